//! From commands to instructions. Constants are folded, variables become slots, conditions become jumps, and what can
//! be known to be wrong is refused here, with its place, before anything is sent.

use crate::ast::{Command, CommandKind, Expr, ExprKind};
use crate::error::{Fault, ScriptError};
use crate::functions::evaluate;
use crate::program::{Effect, Op, Piece, Program, Slot, Statement};
use crate::scan::scan;
use crate::value::Value;
use pgdyno_base::Prng;
use std::collections::BTreeMap;

/// Variables with values before the script begins: `-D`, `scale`, `client_id` and so on.
pub type Variables = BTreeMap<String, Value>;

/// Variables that every client has, whatever `-D` says; the engine fills them in.
pub const BUILT_IN: [&str; 4] = ["client_id", "default_seed", "random_seed", "scale"];

/// Variables are slots of 16 bits; so are statements and arguments.
const MAX_SLOTS: usize = u16::MAX as usize;

/// Compiles the script `text`. A variable that neither `variables` nor a `\set` of the script defines is refused.
pub fn compile(name: &str, text: &str, variables: &Variables) -> Result<Program, ScriptError> {
    let place = |fault: Fault| ScriptError::at(name, text, fault.offset, fault.message, fault.hint);
    if let Some(at) = text.find('\0') {
        return Err(place(Fault::new(at, "the script holds a NUL byte").hint("Is this a text file?")));
    }
    let commands = scan(text).map_err(place)?;
    let mut compiler = Compiler::new(name, text, variables, &commands);
    for command in &commands {
        compiler.command(command).map_err(place)?;
    }
    if let Some(open) = compiler.open_ifs.last() {
        return Err(place(Fault::new(open.offset, "\\if without \\endif")));
    }
    compiler.emit(Op::Done, text.len());
    if compiler.program.ops.len() == 1 {
        return Err(place(Fault::new(0, "the script has no command")));
    }
    Ok(compiler.program)
}

/// An `\if` that is not closed yet.
struct OpenIf {
    offset: usize,
    /// The jump of the last condition, to be aimed at the next branch.
    pending: Option<usize>,
    /// Jumps from the ends of branches, to be aimed behind the `\endif`.
    ends: Vec<usize>,
}

struct Compiler {
    program: Program,
    /// Names that some `\set` of the script assigns.
    assigned: Vec<String>,
    open_ifs: Vec<OpenIf>,
}

impl Compiler {
    fn new(name: &str, text: &str, variables: &Variables, commands: &[Command]) -> Compiler {
        let assigned = commands
            .iter()
            .filter_map(|c| match &c.kind {
                CommandKind::Set { name, .. } => Some(name.clone()),
                _ => None,
            })
            .collect();
        let mut program = Program {
            name: name.to_owned(),
            source: text.to_owned(),
            ops: Vec::new(),
            offsets: Vec::new(),
            statements: Vec::new(),
            variables: BUILT_IN.iter().map(|s| (*s).to_owned()).collect(),
            initial: vec![Value::Unset; BUILT_IN.len()],
        };
        for (name, value) in variables {
            match program.slot(name) {
                Some(slot) => program.initial[usize::from(slot)] = value.clone(),
                None => {
                    program.variables.push(name.clone());
                    program.initial.push(value.clone());
                }
            }
        }
        Compiler { program, assigned, open_ifs: Vec::new() }
    }

    fn emit(&mut self, op: Op, offset: usize) -> usize {
        self.program.ops.push(op);
        self.program.offsets.push(offset);
        self.program.ops.len() - 1
    }

    fn here(&self) -> u32 {
        self.program.ops.len() as u32
    }

    /// Aims the jump at `index` at what is emitted next.
    fn land(&mut self, index: usize) {
        let here = self.here();
        match &mut self.program.ops[index] {
            Op::Jump(target) | Op::JumpUnless(target) | Op::ShortCircuit { target, .. } => *target = here,
            other => unreachable!("{other:?} is no jump"),
        }
    }

    fn slot(&mut self, name: &str, offset: usize) -> Result<Slot, Fault> {
        if let Some(slot) = self.program.slot(name) {
            return Ok(slot);
        }
        if self.program.variables.len() >= MAX_SLOTS {
            return Err(Fault::new(offset, "too many variables"));
        }
        self.program.variables.push(name.to_owned());
        self.program.initial.push(Value::Unset);
        Ok((self.program.variables.len() - 1) as Slot)
    }

    fn is_known(&self, name: &str) -> bool {
        self.program.slot(name).is_some() || self.assigned.iter().any(|a| a == name)
    }

    fn unknown(&self, name: &str, offset: usize) -> Fault {
        let mut known: Vec<&str> = self.program.variables.iter().chain(&self.assigned).map(String::as_str).collect();
        known.sort_unstable();
        known.dedup();
        Fault::new(offset, format!("undefined variable \"{name}\""))
            .hint(format!("Define it with \\set or -D {name}=VALUE. Known here: {}.", known.join(", ")))
    }

    fn command(&mut self, command: &Command) -> Result<(), Fault> {
        let at = command.offset;
        match &command.kind {
            CommandKind::Sql => self.statement(command)?,
            CommandKind::Set { name, value } => {
                self.expression(value)?;
                let slot = self.slot(name, at)?;
                self.emit(Op::Store(slot), at);
            }
            CommandKind::Sleep { amount, factor } => {
                self.expression(amount)?;
                self.emit(Op::Sleep { nanos: *factor as u64 * 1_000 }, at);
            }
            CommandKind::If(condition) => {
                self.expression(condition)?;
                let jump = self.emit(Op::JumpUnless(0), condition.offset);
                self.open_ifs.push(OpenIf { offset: at, pending: Some(jump), ends: Vec::new() });
            }
            CommandKind::Elif(condition) => {
                self.end_branch(at, "\\elif")?;
                self.expression(condition)?;
                let jump = self.emit(Op::JumpUnless(0), condition.offset);
                self.open_ifs.last_mut().expect("end_branch saw it").pending = Some(jump);
            }
            CommandKind::Else => self.end_branch(at, "\\else")?,
            CommandKind::Endif => {
                let open = self.open_ifs.pop().ok_or_else(|| Fault::new(at, "\\endif without matching \\if"))?;
                for jump in open.ends.into_iter().chain(open.pending) {
                    self.land(jump);
                }
            }
        }
        Ok(())
    }

    /// Closes the branch that runs up to here and begins the next one.
    fn end_branch(&mut self, at: usize, what: &str) -> Result<(), Fault> {
        let Some(open) = self.open_ifs.last_mut() else {
            return Err(Fault::new(at, format!("{what} without matching \\if")));
        };
        let Some(pending) = open.pending.take() else {
            return Err(Fault::new(at, format!("{what} after \\else")));
        };
        let jump = self.emit(Op::Jump(0), at);
        self.open_ifs.last_mut().expect("seen above").ends.push(jump);
        self.land(pending);
        Ok(())
    }

    fn expression(&mut self, expr: &Expr) -> Result<(), Fault> {
        if let Some(value) = fold(expr) {
            self.emit(Op::Const(value), expr.offset);
            return Ok(());
        }
        let at = expr.offset;
        match &expr.kind {
            ExprKind::Const(value) => {
                self.emit(Op::Const(value.clone()), at);
            }
            ExprKind::Var(name) => {
                if !self.is_known(name) {
                    return Err(self.unknown(name, at));
                }
                let slot = self.slot(name, at)?;
                self.emit(Op::Load(slot), at);
            }
            ExprKind::Call(function, args) => {
                for arg in args {
                    self.expression(arg)?;
                }
                let args = u16::try_from(args.len()).map_err(|_| Fault::new(at, "too many arguments"))?;
                self.emit(Op::Call { function: *function, args }, at);
            }
            ExprKind::And(left, right) => self.logic(left, right, false)?,
            ExprKind::Or(left, right) => self.logic(left, right, true)?,
            ExprKind::Case { branches, otherwise } => {
                let mut ends = Vec::new();
                for (condition, value) in branches {
                    self.expression(condition)?;
                    let next = self.emit(Op::JumpUnless(0), condition.offset);
                    self.expression(value)?;
                    ends.push(self.emit(Op::Jump(0), value.offset));
                    self.land(next);
                }
                self.expression(otherwise)?;
                for end in ends {
                    self.land(end);
                }
            }
        }
        Ok(())
    }

    fn logic(&mut self, left: &Expr, right: &Expr, decides: bool) -> Result<(), Fault> {
        self.expression(left)?;
        let jump = self.emit(Op::ShortCircuit { decides, target: 0 }, left.offset);
        self.expression(right)?;
        self.emit(Op::Combine { decides }, right.offset);
        self.land(jump);
        Ok(())
    }

    fn statement(&mut self, command: &Command) -> Result<(), Fault> {
        let index = u16::try_from(self.program.statements.len())
            .map_err(|_| Fault::new(command.offset, "too many statements"))?;
        let mut prepared = String::new();
        let mut parameters: Vec<Slot> = Vec::new();
        let mut pieces = Vec::new();
        let mut plain = String::new();
        for part in variables_in(&command.text) {
            match part {
                Part::Text(text) => {
                    prepared.push_str(text);
                    plain.push_str(text);
                }
                Part::Variable { name, offset, quoted } => {
                    let at = command.offset + offset;
                    if !self.is_known(name) {
                        // Inside a literal a colon is more likely text than a variable.
                        if quoted {
                            prepared.push_str(&command.text[offset..offset + name.len() + 1]);
                            plain.push_str(&command.text[offset..offset + name.len() + 1]);
                            continue;
                        }
                        return Err(self.unknown(name, at));
                    }
                    let slot = self.slot(name, at)?;
                    parameters.push(slot);
                    prepared.push_str(&format!("${}", parameters.len()));
                    pieces.push(Piece::Text(std::mem::take(&mut plain)));
                    pieces.push(Piece::Variable(slot));
                }
            }
        }
        pieces.push(Piece::Text(plain));
        if parameters.len() > MAX_SLOTS {
            return Err(Fault::new(command.offset, "a statement takes at most 65535 parameters"));
        }
        let line = self.program.source[..command.offset].matches('\n').count() + 1;
        self.program.statements.push(Statement {
            effect: effect(&command.text),
            text: command.text.clone(),
            prepared,
            parameters,
            pieces,
            line,
            offset: command.offset,
        });
        self.emit(Op::Send(index), command.offset);
        Ok(())
    }
}

/// The value of an expression that no variable and no random number enters; none also when evaluating it fails, so
/// that the failure is reported when (and only if) the script gets there.
fn fold(expr: &Expr) -> Option<Value> {
    match &expr.kind {
        ExprKind::Const(value) => Some(value.clone()),
        ExprKind::Call(f, args) if f.is_pure() => {
            let args: Option<Vec<Value>> = args.iter().map(fold).collect();
            evaluate(*f, &args?, &mut Prng::from_seed(0)).ok()
        }
        _ => None,
    }
}

enum Part<'a> {
    Text(&'a str),
    Variable { name: &'a str, offset: usize, quoted: bool },
}

/// Cuts a statement at its `:name`s. `::` is a cast. As in pgbench, quotes do not protect a known name.
fn variables_in(sql: &str) -> Vec<Part<'_>> {
    let bytes = sql.as_bytes();
    let mut parts = Vec::new();
    let (mut from, mut at, mut quoted) = (0, 0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'\'' => {
                quoted = !quoted;
                at += 1;
            }
            b':' if bytes.get(at + 1) == Some(&b':') => {
                while bytes.get(at) == Some(&b':') {
                    at += 1;
                }
            }
            b':' if bytes.get(at + 1).is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_' || *b >= 0x80) => {
                let len = sql[at + 1..]
                    .bytes()
                    .position(|b| !(b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80))
                    .unwrap_or(sql.len() - at - 1);
                parts.push(Part::Text(&sql[from..at]));
                parts.push(Part::Variable { name: &sql[at + 1..at + 1 + len], offset: at, quoted });
                at += 1 + len;
                from = at;
            }
            _ => at += 1,
        }
    }
    parts.push(Part::Text(&sql[from..]));
    parts
}

fn effect(sql: &str) -> Effect {
    let mut words = sql.split(|c: char| !c.is_ascii_alphabetic()).filter(|w| !w.is_empty());
    let first = words.next().unwrap_or("").to_ascii_uppercase();
    match first.as_str() {
        "COMMIT" | "END" => Effect::Commits,
        "PREPARE" if words.next().is_some_and(|w| w.eq_ignore_ascii_case("transaction")) => Effect::Commits,
        "BEGIN" | "START" => Effect::Begins,
        "ROLLBACK" | "ABORT" => Effect::RollsBack,
        _ => Effect::Other,
    }
}
