//! Runs a program for one client.

use crate::error::{EvalError, ScriptError};
use crate::functions::{Function, evaluate};
use crate::program::{Op, Piece, Program};
use crate::value::Value;
use pgdyno_base::{Nanos, Prng};

/// What the client shall do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send this statement; call [`Vm::step`] again when its result is there.
    Send(usize),
    /// Wait; then call again.
    Sleep(Nanos),
    /// The transaction is over; the next call begins a new one.
    Done,
}

/// The state of one client in one script. Variables keep their values from one transaction to the next.
#[derive(Clone, Debug)]
pub struct Vm {
    pc: usize,
    stack: Vec<Value>,
    variables: Vec<Value>,
    /// Lines that `debug()` has produced since they were last taken.
    pub debug: Vec<String>,
}

impl Vm {
    /// A client at the beginning of `program`.
    pub fn new(program: &Program) -> Vm {
        Vm { pc: 0, stack: Vec::with_capacity(4), variables: program.initial.clone(), debug: Vec::new() }
    }

    /// Back to the beginning, as after a failed transaction. Variables keep their values.
    pub fn restart(&mut self) {
        self.pc = 0;
        self.stack.clear();
    }

    /// Assigns a variable; ignored when the script does not know it.
    pub fn set(&mut self, program: &Program, name: &str, value: Value) {
        if let Some(slot) = program.slot(name) {
            self.variables[usize::from(slot)] = value;
        }
    }

    /// A variable's value.
    pub fn get(&self, program: &Program, name: &str) -> Option<&Value> {
        program.slot(name).map(|slot| &self.variables[usize::from(slot)])
    }

    /// The value of parameter `n` (from 0) of a statement.
    #[inline]
    pub fn parameter(&self, program: &Program, statement: usize, n: usize) -> &Value {
        &self.variables[usize::from(program.statements[statement].parameters[n])]
    }

    /// Appends a statement's text with the variables' values in it: the simple protocol.
    pub fn substitute(&self, program: &Program, statement: usize, out: &mut Vec<u8>) {
        for piece in &program.statements[statement].pieces {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Variable(slot) => self.variables[usize::from(*slot)].write_text(out),
            }
        }
    }

    /// Runs to the next yield. An error names its place; the transaction is then over, call [`Vm::restart`].
    #[inline]
    pub fn step(&mut self, program: &Program, rng: &mut Prng) -> Result<Step, Box<ScriptError>> {
        self.run(program, rng).map_err(|e| Box::new(program.locate(self.pc, &e)))
    }

    fn run(&mut self, program: &Program, rng: &mut Prng) -> Result<Step, EvalError> {
        loop {
            match &program.ops[self.pc] {
                Op::Const(value) => self.stack.push(value.clone()),
                Op::Load(slot) => match &self.variables[usize::from(*slot)] {
                    Value::Unset => {
                        return Err(EvalError::Undefined(program.variables[usize::from(*slot)].clone()));
                    }
                    value => self.stack.push(value.clone()),
                },
                Op::Call { function, args } => {
                    let base = self.stack.len() - usize::from(*args);
                    let value = evaluate(*function, &self.stack[base..], rng)?;
                    if *function == Function::Debug {
                        self.debug.push(format!("{} {}", value.type_name(), value.text()));
                    }
                    self.stack.truncate(base);
                    self.stack.push(value);
                }
                Op::Store(slot) => self.variables[usize::from(*slot)] = self.pop(),
                Op::Jump(target) => {
                    self.pc = *target as usize;
                    continue;
                }
                Op::JumpUnless(target) => {
                    if !self.pop().truth()? {
                        self.pc = *target as usize;
                        continue;
                    }
                }
                Op::ShortCircuit { decides, target } => match self.stack.last().expect("compiled with an operand") {
                    Value::Null => {}
                    value => {
                        if value.to_bool()? == *decides {
                            self.pc = *target as usize;
                            continue;
                        }
                    }
                },
                Op::Combine { decides } => {
                    let (right, left) = (self.pop(), self.pop());
                    // The left side did not decide: it is NULL or the other boolean.
                    let value = match right {
                        Value::Null => Value::Null,
                        right if right.to_bool()? == *decides => Value::Bool(*decides),
                        _ if left == Value::Null => Value::Null,
                        _ => Value::Bool(!*decides),
                    };
                    self.stack.push(value);
                }
                Op::Sleep { nanos } => {
                    let amount = self.pop().to_int()?;
                    self.pc += 1;
                    return Ok(Step::Sleep(Nanos((amount.max(0) as u64).saturating_mul(*nanos))));
                }
                Op::Send(statement) => {
                    self.pc += 1;
                    return Ok(Step::Send(usize::from(*statement)));
                }
                Op::Done => {
                    self.pc = 0;
                    return Ok(Step::Done);
                }
            }
            self.pc += 1;
        }
    }

    fn pop(&mut self) -> Value {
        self.stack.pop().expect("the compiler balances the stack")
    }
}
