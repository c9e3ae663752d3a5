//! Runs programs for one client.

use crate::error::EvalError;
use crate::functions::{Function, evaluate, on_integers};
use crate::program::{Delay, Op, Piece, Program, ShellWord, Slot};
use crate::sample::Sample;
use crate::symbols::Symbols;
use crate::value::{Scalar, Text, Value};
use pgdyno_base::{Nanos, Prng};
use std::sync::Arc;

/// A shell command must be shorter than this: pgbench's limit.
const MAX_SHELL: usize = 255;

/// Next action of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send this statement; call [`Vm::step`] again when its result is there (in a pipeline: at once).
    Send(usize),
    /// Wait; then call again.
    Sleep(Nanos),
    /// Run this shell command; then call again.
    Shell(usize),
    /// Send what follows without waiting; prepare these statements before.
    StartPipeline {
        /// The first statement of the pipeline.
        first: usize,
        /// The statement behind its last.
        end: usize,
    },
    /// Let the server synchronise within the pipeline.
    SyncPipeline,
    /// Wait for everything that the pipeline has sent; then call again.
    EndPipeline,
    /// This command begins; call again.
    Mark(usize),
    /// The transaction is over; the next call begins a new one.
    Done,
}

/// Reason why a program cannot continue: the error, and the instruction in which it occurred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Error that occurred.
    pub error: EvalError,
    /// Instruction in which the error occurred.
    pub pc: usize,
}

/// The state of one client: where it is in its program, and its variables, which it keeps from one transaction and one
/// program to the next.
#[derive(Clone, Debug)]
pub struct Vm {
    pc: usize,
    stack: Vec<Scalar>,
    variables: Vec<Value>,
    symbols: Arc<Symbols>,
    /// Samples that `\\pick` draws from, by number.
    samples: Vec<Arc<Sample>>,
    /// The row of scheduled samples.
    row: u64,
    /// Values that `debug()` has shown since they were last taken, each with the number of its command.
    pub debug: Vec<(usize, Scalar)>,
}

impl Vm {
    /// A client at the beginning of a program, with the variables that the symbols begin with.
    pub fn new(symbols: &Arc<Symbols>) -> Vm {
        let variables = symbols.initial();
        let samples = symbols.samples().to_vec();
        Vm { pc: 0, stack: Vec::new(), variables, symbols: symbols.clone(), samples, row: 0, debug: Vec::new() }
    }

    /// Back to the beginning, as after a failed transaction. Variables keep their values.
    pub fn restart(&mut self) {
        self.pc = 0;
    }

    /// Assigns a variable by name; ignored when no script uses it.
    pub fn set(&mut self, name: &str, value: Value) {
        if let Some(slot) = self.symbols.slot(name) {
            self.assign(slot, value);
        }
    }

    /// Picks from this sample instead of the one of its name.
    pub fn use_sample(&mut self, sample: &Arc<Sample>) {
        if let Some(n) = self.symbols.sample(&sample.name) {
            self.samples[n] = sample.clone();
        }
    }

    /// Says the row that scheduled samples give until it is said again.
    pub fn use_row(&mut self, row: u64) {
        self.row = row;
    }

    /// Assigns a variable.
    pub fn assign(&mut self, slot: Slot, value: Value) {
        self.variables[usize::from(slot)] = value;
    }

    /// A variable's value.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.symbols.slot(name).map(|slot| &self.variables[usize::from(slot)])
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
                Piece::Variable(slot) => match &self.variables[usize::from(*slot)] {
                    Value::Unset => {
                        out.push(b':');
                        out.extend_from_slice(self.symbols.name(*slot).as_bytes());
                    }
                    value => value.write_literal(out),
                },
            }
        }
    }

    /// The first word of a shell command, as written: what messages call it.
    pub fn shell_name(&self, program: &Program, shell: usize) -> String {
        match program.shells[shell].words.first() {
            Some(ShellWord::Text(t)) => t.clone(),
            Some(ShellWord::Variable(slot)) => format!(":{}", self.symbols.name(*slot)),
            None => String::new(),
        }
    }

    /// The text of a shell command, its variables replaced.
    pub fn shell_command(&self, program: &Program, shell: usize) -> Result<String, EvalError> {
        let words = &program.shells[shell].words;
        let first = self.shell_name(program, shell);
        let mut out = Vec::new();
        for word in words {
            out.push(match word {
                ShellWord::Text(text) => text.clone(),
                ShellWord::Variable(slot) => match &self.variables[usize::from(*slot)] {
                    Value::Unset => {
                        let name = self.symbols.name(*slot);
                        return Err(EvalError::Execution(format!("{first}: undefined variable \":{name}\"")));
                    }
                    value => value.text(),
                },
            });
        }
        let command = out.join(" ");
        if command.len() >= MAX_SHELL {
            return Err(EvalError::Execution(format!("{first}: shell command is too long")));
        }
        Ok(command)
    }

    /// Returns the program counter: the instruction that the machine would run next.
    pub fn pc(&self) -> usize {
        self.pc
    }

    /// The command that the last yield came from.
    pub fn command(&self, program: &Program) -> usize {
        program.command_at(self.pc.saturating_sub(1))
    }

    /// Runs to the next yield. After a failure the transaction is over: call [`Vm::restart`].
    #[inline]
    pub fn step(&mut self, program: &Program, rng: &mut Prng) -> Result<Step, Box<Failure>> {
        self.run(program, rng).map_err(|error| Box::new(Failure { error: *error, pc: self.pc }))
    }

    fn run(&mut self, program: &Program, rng: &mut Prng) -> Result<Step, Box<EvalError>> {
        if self.stack.len() < program.depth {
            self.stack.resize(program.depth, Scalar::Null);
        }
        // Where the machine stands is written back only where somebody can see it.
        let (mut pc, mut top) = (self.pc, 0usize);
        let stopped = loop {
            // Between instructions everything is a copy of 16 bytes; nothing is allocated and nothing is freed, but for
            // what a variable held before.
            let stack = self.stack.as_mut_slice();
            match &program.ops[pc] {
                Op::Const(value) => {
                    stack[top] = *value;
                    top += 1;
                }
                Op::Load(slot) => match self.variables[usize::from(*slot)].read(|| self.symbols.name(*slot)) {
                    Ok(value) => {
                        stack[top] = value;
                        top += 1;
                    }
                    Err(e) => break Err(e),
                },
                Op::Binary(f) => {
                    top -= 1;
                    let value = match (stack[top - 1], stack[top]) {
                        (Scalar::Int(x), Scalar::Int(y)) => {
                            on_integers(*f, x, y).unwrap_or_else(|| unreachable!("{f:?} is no operator"))
                        }
                        (a, b) => evaluate(*f, &[a, b], rng),
                    };
                    match value {
                        Ok(value) => stack[top - 1] = value,
                        Err(e) => break Err(e),
                    }
                }
                Op::Call { function, args } => {
                    let base = top - usize::from(*args);
                    match evaluate(*function, &stack[base..top], rng) {
                        Ok(value) => {
                            if *function == Function::Debug {
                                self.debug.push((program.command_at(pc), value));
                            }
                            stack[base] = value;
                            top = base + 1;
                        }
                        Err(e) => break Err(e),
                    }
                }
                Op::Store(slot) => {
                    top -= 1;
                    self.variables[usize::from(*slot)] = stack[top].into();
                }
                Op::Jump(target) => {
                    pc = *target as usize;
                    continue;
                }
                Op::JumpUnless(target) => {
                    top -= 1;
                    if !stack[top].truth() {
                        pc = *target as usize;
                        continue;
                    }
                }
                Op::ShortCircuit { decides, target } => {
                    // As pgbench has it, not as SQL: NULL on the left is the value, whatever the right would be.
                    let decided = match stack[top - 1] {
                        Scalar::Null => true,
                        left => match left.to_bool() {
                            Ok(left) => left == *decides,
                            Err(e) => break Err(e),
                        },
                    };
                    if decided {
                        pc = *target as usize;
                        continue;
                    }
                    top -= 1;
                }
                Op::Boolean => {
                    let value = stack[top - 1];
                    if let (false, Err(e)) = (value == Scalar::Null, value.to_bool()) {
                        break Err(e);
                    }
                }
                Op::Pick(n) => {
                    let pick = &program.picks[usize::from(*n)];
                    let sample = &self.samples[pick.sample];
                    let Some(last) = sample.rows().checked_sub(1) else {
                        break Err(Box::new(EvalError::Execution(format!("pick: sample {} has no rows", sample.name))));
                    };
                    let n = if sample.is_scheduled { self.row.min(last) } else { rng.range_u64(0, last) };
                    for (slot, value) in pick.slots.iter().zip(sample.row(n)) {
                        self.variables[usize::from(*slot)] = value.clone();
                    }
                }
                Op::Send(statement) => break Ok(Step::Send(usize::from(*statement))),
                yields => break self.stop(yields, pc, program),
            }
            pc += 1;
        };
        self.pc = match stopped {
            Ok(Step::Done) => 0,
            Ok(_) => pc + 1,
            Err(_) => pc,
        };
        stopped
    }

    /// An instruction that hands something to the caller.
    fn stop(&self, op: &Op, pc: usize, program: &Program) -> Result<Step, Box<EvalError>> {
        Ok(match op {
            Op::Sleep(delay) => Step::Sleep(self.delay(delay, pc, program)?),
            Op::Shell(shell) => Step::Shell(usize::from(*shell)),
            Op::StartPipeline { first, end } => {
                Step::StartPipeline { first: usize::from(*first), end: usize::from(*end) }
            }
            Op::SyncPipeline => Step::SyncPipeline,
            Op::EndPipeline => Step::EndPipeline,
            Op::Mark(command) => Step::Mark(usize::from(*command)),
            Op::BadName(command) => {
                let shown = &program.commands[usize::from(*command)];
                let name = shown.text.split_ascii_whitespace().nth(1).unwrap_or("").to_owned();
                let command = if shown.name.eq_ignore_ascii_case("set") { "set" } else { "setshell" };
                return Err(Box::new(EvalError::Name(command, name)));
            }
            _ => Step::Done,
        })
    }

    /// A variable of `\sleep` is read as C's `atoi` reads it: the integer that its text begins with.
    fn delay(&self, delay: &Delay, pc: usize, program: &Program) -> Result<Nanos, Box<EvalError>> {
        let (slot, unit) = match delay {
            Delay::Fixed(nanos) => return Ok(Nanos(*nanos)),
            Delay::Variable { slot, unit } => (*slot, *unit),
        };
        let command = &program.commands[program.command_at(pc)].name;
        let name = self.symbols.name(slot);
        let value = &self.variables[usize::from(slot)];
        if *value == Value::Unset {
            return Err(Box::new(EvalError::Execution(format!("{command}: undefined variable \"{name}\""))));
        }
        let text = value.text();
        let unsigned = text.trim_start().strip_prefix(['-', '+']).unwrap_or(text.trim_start());
        let digits: String = unsigned.chars().take_while(char::is_ascii_digit).collect();
        if digits.is_empty() && !text.starts_with(|c: char| c.is_ascii_digit()) {
            let message = format!("{command}: invalid sleep time \"{text}\" for variable \"{name}\"");
            return Err(Box::new(EvalError::Execution(message)));
        }
        if text.trim_start().starts_with('-') {
            return Ok(Nanos::ZERO);
        }
        Ok(Nanos(digits.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(unit)))
    }

    /// Stores what a query returned as text; false when a variable cannot be called that.
    pub fn capture(&mut self, name: &str, value: &[u8]) -> bool {
        match self.symbols.slot(name) {
            Some(slot) => self.assign(slot, Value::Text(Arc::new(Text::new(value)))),
            None => return crate::symbols::is_valid_name(name),
        }
        true
    }
}
