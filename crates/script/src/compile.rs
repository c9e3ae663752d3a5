//! From commands to instructions. Constants are folded, variables become slots, conditions become jumps, and what can
//! be known to be wrong is refused here, with its place, before anything is sent.

use crate::ast::{Amount, Command, CommandKind, Expr, ExprKind};
use crate::error::{Fault, ScriptError, Span};
use crate::flavour::Flavour;
use crate::functions::{evaluate, on_integers};
use crate::program::{self, Capture, Delay, Op, Pick, Piece, Program, Shell, ShellWord, Slot, Statement};
use crate::scan::{end_of_quoted, is_only_comments, scan};
use crate::symbols::{Symbols, is_valid_name};
use crate::value::Scalar;
use pgdyno_base::Prng;

/// Options for compiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Refuse what pgbench finds out while it runs: variables that nothing defines, names that cannot be.
    pub strict: bool,
    /// Yield at the beginning of each command, so that each can be timed.
    pub marks: bool,
    /// Product whose SQL the statements are in.
    pub flavour: Flavour,
}

impl Default for Options {
    fn default() -> Options {
        Options { strict: true, marks: false, flavour: Flavour::Postgres }
    }
}

/// Statements, commands and arguments are numbered in 16 bits.
const MAX_COMMANDS: usize = u16::MAX as usize;

/// Compiles the script `text` for a workload with these variables, and adds those that it uses itself.
pub fn compile(name: &str, text: &str, symbols: &mut Symbols, options: Options) -> Result<Program, ScriptError> {
    let place = |fault: Fault| ScriptError::of(name, text, fault);
    if let Some(at) = text.find('\0') {
        return Err(place(Fault::new(at, "the script holds a NUL byte").hint("Is this a text file?")));
    }
    let mut commands = scan(text, options.flavour).map_err(place)?;
    if options.strict {
        // pgbench sends a lone comment as an empty query.
        commands.retain(|c| {
            !matches!(c.kind, CommandKind::Sql { ended: false, .. }) || !is_only_comments(&c.text, options.flavour)
        });
    }
    if commands.is_empty() {
        let classic = "empty command list for script \"{script}\"";
        return Err(place(Fault::new(0, "the script has no command").classic_whole(classic)));
    }
    if commands.len() > MAX_COMMANDS {
        return Err(place(Fault::new(commands[MAX_COMMANDS].offset, "the script has too many commands")));
    }
    let mut compiler = Compiler::new(name, text, symbols, options);
    compiler.declare(&commands).map_err(place)?;
    for (i, command) in commands.iter().enumerate() {
        compiler.command(i as u16, command).map_err(place)?;
    }
    if let Some(open) = compiler.open_ifs.last() {
        let fault = Fault::new(open.offset, "\\if without \\endif");
        return Err(place(condition(fault, commands.len(), "\\if without matching \\endif")));
    }
    compiler.current = commands.len() as u16;
    compiler.emit(Op::Done, text.len());
    compiler.program.depth = depth(&compiler.program);
    Ok(compiler.program)
}

/// Adds how pgbench complains about conditions: it counts commands, not lines.
fn condition(fault: Fault, command: usize, words: &str) -> Fault {
    fault.classic_whole(format!("condition error in script \"{{script}}\" command {}: {words}", command + 1))
}

/// An `\if` that is not closed yet.
struct OpenIf {
    offset: usize,
    /// The jump of the last condition, to be aimed at the next branch.
    pending: Option<usize>,
    /// Jumps from the ends of branches, to be aimed behind the `\endif`.
    ends: Vec<usize>,
}

struct Compiler<'s> {
    program: Program,
    symbols: &'s mut Symbols,
    options: Options,
    open_ifs: Vec<OpenIf>,
    /// The command that is being compiled.
    current: u16,
    /// Instructions of the `\startpipeline`s that no `\endpipeline` has followed yet: several where branches begin one.
    pipelines: Vec<usize>,
    /// An offset, and its line.
    counted: (usize, usize),
}

impl<'s> Compiler<'s> {
    fn new(name: &str, text: &str, symbols: &'s mut Symbols, options: Options) -> Compiler<'s> {
        let program = Program {
            flavour: options.flavour,
            name: name.to_owned(),
            source: text.to_owned(),
            ops: Vec::new(),
            offsets: Vec::new(),
            owners: Vec::new(),
            depth: 0,
            statements: Vec::new(),
            commands: Vec::new(),
            shells: Vec::new(),
            picks: Vec::new(),
        };
        Compiler { program, symbols, options, open_ifs: Vec::new(), current: 0, pipelines: Vec::new(), counted: (0, 1) }
    }

    /// Makes known what the script assigns anywhere: an assignment may stand behind its first use.
    fn declare(&mut self, commands: &[Command]) -> Result<(), Fault> {
        for c in commands {
            match &c.kind {
                CommandKind::Set { name, .. } | CommandKind::Shell { assign: Some(name), .. } => {
                    if is_valid_name(name) {
                        self.symbols.assigned(name).ok_or_else(|| Fault::new(c.offset, "too many variables"))?;
                    } else if self.options.strict {
                        let at = c.offset + c.text.find(name.as_str()).unwrap_or(0);
                        return Err(Fault::new(at, format!("invalid variable name: \"{name}\""))
                            .hint("A name has letters, digits and underscores and begins with no digit."));
                    }
                }
                CommandKind::Pick { sample, prefix } => {
                    for name in self.picked(c, sample, prefix)? {
                        self.symbols.assigned(&name).ok_or_else(|| Fault::new(c.offset, "too many variables"))?;
                    }
                }
                CommandKind::Sql { capture: Capture::Last(prefix) | Capture::Each(prefix), .. } => {
                    self.symbols.assigned_prefix(prefix);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The variables that a `\\pick` assigns.
    fn picked(&self, command: &Command, sample: &str, prefix: &str) -> Result<Vec<String>, Fault> {
        let at = command.offset;
        if !self.options.strict {
            // pgbench has none.
            let (name, end) = (command.name.clone(), at + command.shown.len());
            let mut fault = Fault::new(at, format!("invalid command \\{name}")).classic("invalid command");
            fault.classic.command = Some(Span { name, start: at, end, shown: true });
            return Err(fault.hint("\\pick is for workloads of experiments, which say what it picks from."));
        }
        let Some(number) = self.symbols.sample(sample) else {
            let known: Vec<&str> = self.symbols.samples().iter().map(|s| s.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(Fault::new(at, format!("there is no sample \"{sample}\"")).hint(format!(
                "The workload's samples are: {known}. Add samples.{sample} = {{ table = ..., columns = [...] }} to it."
            )));
        };
        let names = self.symbols.samples()[number].columns.iter().map(|column| format!("{prefix}{column}"));
        let names: Vec<String> = names.collect();
        match names.iter().find(|name| !is_valid_name(name)) {
            Some(name) => Err(Fault::new(at, format!("invalid variable name: \"{name}\""))
                .hint("A name has letters, digits and underscores and begins with no digit: give a prefix.")),
            None => Ok(names),
        }
    }

    fn emit(&mut self, op: Op, offset: usize) -> usize {
        self.program.ops.push(op);
        self.program.offsets.push(offset);
        self.program.owners.push(self.current);
        self.program.ops.len() - 1
    }

    /// The line at `offset`, which never goes back: lines are counted once.
    fn line_at(&mut self, offset: usize) -> usize {
        let (from, line) = self.counted;
        self.counted = (offset, line + self.program.source[from..offset].matches('\n').count());
        self.counted.1
    }

    fn mark(&mut self, offset: usize) {
        if self.options.marks {
            self.emit(Op::Mark(self.current), offset);
        }
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

    /// The slot of a variable that is read at `offset`.
    fn slot(&mut self, name: &str, offset: usize) -> Result<Slot, Fault> {
        if self.options.strict && !self.symbols.is_defined(name) {
            return Err(Fault::new(offset, format!("undefined variable \"{name}\"")).hint(format!(
                "Define it with \\set or --set {name}=VALUE. Known here: {}.",
                self.symbols.defined().join(", ")
            )));
        }
        self.symbols.intern(name).ok_or_else(|| Fault::new(offset, "too many variables"))
    }

    fn command(&mut self, number: u16, command: &Command) -> Result<(), Fault> {
        let at = command.offset;
        self.current = number;
        let is_sql = matches!(command.kind, CommandKind::Sql { .. });
        let line = self.line_at(at);
        self.program.commands.push(program::Command {
            text: command.shown.clone(),
            name: command.name.clone(),
            statement: is_sql.then_some(self.program.statements.len()),
            line,
            offset: at,
        });
        self.mark(at);
        match &command.kind {
            CommandKind::Sql { capture, ended } => self.statement(command, capture, *ended)?,
            CommandKind::Set { name, value } => {
                self.expression(value)?;
                self.assign(name, at)?;
            }
            CommandKind::Sleep { amount: Amount::Number(n), unit } => {
                let nanos = (*n).max(0).unsigned_abs().saturating_mul(*unit);
                self.emit(Op::Sleep(Delay::Fixed(nanos)), at);
            }
            CommandKind::Sleep { amount: Amount::Variable(name), unit } => {
                let slot = self.slot(name, at)?;
                self.emit(Op::Sleep(Delay::Variable { slot, unit: *unit }), at);
            }
            CommandKind::Pick { sample, prefix } => {
                let names = self.picked(command, sample, prefix)?;
                let slots = names.iter().filter_map(|name| self.symbols.slot(name)).collect();
                let sample = self.symbols.sample(sample).unwrap_or_default();
                self.emit(Op::Pick(self.program.picks.len() as u16), at);
                self.program.picks.push(Pick { sample, slots });
            }
            CommandKind::Shell { assign, words } => self.shell(assign.as_deref(), words, at)?,
            CommandKind::StartPipeline => {
                let first = self.program.statements.len() as u16;
                let start = self.emit(Op::StartPipeline { first, end: first }, at);
                self.pipelines.push(start);
            }
            CommandKind::SyncPipeline => {
                self.emit(Op::SyncPipeline, at);
            }
            CommandKind::EndPipeline => {
                self.emit(Op::EndPipeline, at);
                self.pipelines.clear();
            }
            CommandKind::If(value) => {
                self.expression(value)?;
                let jump = self.emit(Op::JumpUnless(0), value.offset);
                self.open_ifs.push(OpenIf { offset: at, pending: Some(jump), ends: Vec::new() });
            }
            CommandKind::Elif(value) => {
                self.end_branch(at, "\\elif")?;
                self.mark(at);
                self.expression(value)?;
                let jump = self.emit(Op::JumpUnless(0), value.offset);
                self.open_ifs.last_mut().expect("end_branch saw it").pending = Some(jump);
            }
            CommandKind::Else => self.end_branch(at, "\\else")?,
            CommandKind::Endif => {
                let Some(open) = self.open_ifs.pop() else {
                    let words = "\\endif without matching \\if";
                    return Err(condition(Fault::new(at, words), usize::from(number), words));
                };
                for jump in open.ends.into_iter().chain(open.pending) {
                    self.land(jump);
                }
            }
        }
        Ok(())
    }

    fn assign(&mut self, name: &str, at: usize) -> Result<(), Fault> {
        let op = match self.symbols.slot(name) {
            Some(slot) if is_valid_name(name) => Op::Store(slot),
            // Found out when it is run, as in pgbench.
            _ => Op::BadName(self.current),
        };
        self.emit(op, at);
        Ok(())
    }

    fn shell(&mut self, assign: Option<&str>, words: &[String], at: usize) -> Result<(), Fault> {
        let mut out = Vec::new();
        for word in words {
            out.push(match word.strip_prefix(':') {
                // A doubled colon stands for one.
                Some(rest) if rest.starts_with(':') => ShellWord::Text(rest.to_owned()),
                Some(name) => ShellWord::Variable(self.slot(name, at)?),
                None => ShellWord::Text(word.clone()),
            });
        }
        let valid = assign.is_none_or(is_valid_name);
        let slot = assign.filter(|_| valid).and_then(|name| self.symbols.slot(name));
        self.emit(Op::Shell(self.program.shells.len() as u16), at);
        self.program.shells.push(Shell { words: out, reads: assign.is_some(), assign: slot });
        if !valid {
            self.emit(Op::BadName(self.current), at);
        }
        Ok(())
    }

    /// Closes the branch that runs up to here and begins the next one.
    fn end_branch(&mut self, at: usize, what: &str) -> Result<(), Fault> {
        let number = usize::from(self.current);
        let wrong = |words: String| Err(condition(Fault::new(at, &words), number, &words));
        let Some(open) = self.open_ifs.last_mut() else {
            return wrong(format!("{what} without matching \\if"));
        };
        let Some(pending) = open.pending.take() else {
            return wrong(format!("{what} after \\else"));
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
                self.emit(Op::Const(*value), at);
            }
            ExprKind::Var(name) => {
                let slot = self.slot(name, at)?;
                self.emit(Op::Load(slot), at);
            }
            ExprKind::Call(function, args) => {
                for arg in args {
                    self.expression(arg)?;
                }
                let count = u16::try_from(args.len()).map_err(|_| Fault::new(at, "too many arguments"))?;
                let operator = on_integers(*function, 1, 1).is_some() && count == 2;
                let op = if operator { Op::Binary(*function) } else { Op::Call { function: *function, args: count } };
                self.emit(op, at);
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
        self.emit(Op::Boolean, right.offset);
        self.land(jump);
        Ok(())
    }

    fn statement(&mut self, command: &Command, capture: &Capture, ended: bool) -> Result<(), Fault> {
        let index = self.program.statements.len() as u16;
        let mut prepared = String::new();
        let mut parameters: Vec<Slot> = Vec::new();
        let mut pieces = Vec::new();
        let mut plain = String::new();
        // pgbench's scripts end their transactions with END, which MySQL knows only within procedures.
        let is_end = self.options.flavour == Flavour::MySql && command.text.trim().eq_ignore_ascii_case("end");
        let sent = if is_end { "COMMIT" } else { command.text.as_str() };
        for part in variables_in(sent, self.options.flavour) {
            match part {
                Part::Text(text) => {
                    prepared.push_str(text);
                    plain.push_str(text);
                }
                Part::Variable { name, offset, quoted } => {
                    // There a colon is more likely text than a variable.
                    if self.options.strict && quoted && !self.symbols.is_defined(name) {
                        let text = &command.text[offset..offset + name.len() + 1];
                        prepared.push_str(text);
                        plain.push_str(text);
                        continue;
                    }
                    let slot = self.slot(name, command.offset + offset)?;
                    parameters.push(slot);
                    match self.options.flavour {
                        Flavour::Postgres => prepared.push_str(&format!("${}", parameters.len())),
                        Flavour::MySql => prepared.push('?'),
                    }
                    pieces.push(Piece::Text(std::mem::take(&mut plain)));
                    pieces.push(Piece::Variable(slot));
                }
            }
        }
        // Sent as well, as pgbench does: the server's log and its messages show it.
        if ended {
            prepared.push(';');
            plain.push(';');
        }
        pieces.push(Piece::Text(plain));
        if parameters.len() > MAX_COMMANDS {
            return Err(Fault::new(command.offset, "a statement takes at most 65535 parameters"));
        }
        self.program.statements.push(Statement {
            text: command.text.trim_end().to_owned(),
            prepared,
            parameters,
            pieces,
            line: self.program.commands.last().map_or(1, |c| c.line),
            offset: command.offset,
            command: usize::from(self.current),
            capture: capture.clone(),
        });
        for start in self.pipelines.clone() {
            if let Op::StartPipeline { end, .. } = &mut self.program.ops[start] {
                *end = index + 1;
            }
        }
        self.emit(Op::Send(index), command.offset);
        Ok(())
    }
}

/// The most values that the stack can hold: the stack is empty between commands, and no command holds more values than
/// it has instructions that push one.
fn depth(program: &Program) -> usize {
    let mut pushes = vec![0; program.commands.len() + 1];
    for (op, owner) in program.ops.iter().zip(&program.owners) {
        let pushes_one = matches!(op, Op::Const(_) | Op::Load(_) | Op::Call { args: 0, .. });
        pushes[usize::from(*owner)] += usize::from(pushes_one);
    }
    pushes.into_iter().max().unwrap_or(0)
}

/// The value of an expression that no variable and no random number enters; none also when evaluating it fails, so
/// that the failure is reported when (and only if) the script gets there.
fn fold(expr: &Expr) -> Option<Scalar> {
    match &expr.kind {
        ExprKind::Const(value) => Some(*value),
        ExprKind::Call(f, args) if f.is_pure() => {
            let args: Option<Vec<Scalar>> = args.iter().map(fold).collect();
            evaluate(*f, &args?, &mut Prng::from_seed(0)).ok()
        }
        _ => None,
    }
}

enum Part<'a> {
    Text(&'a str),
    Variable { name: &'a str, offset: usize, quoted: bool },
}

/// Cuts a statement at its `:name`s. `::` is a cast. As in pgbench, quotes and comments do not protect a known name.
fn variables_in(sql: &str, flavour: Flavour) -> Vec<Part<'_>> {
    let bytes = sql.as_bytes();
    let mut parts = Vec::new();
    // Up to where a literal, a quoted identifier or a comment goes.
    let (mut from, mut at, mut quoted) = (0, 0, 0);
    while at < bytes.len() {
        if at >= quoted {
            quoted = end_of_quoted(sql, at, flavour).unwrap_or(at);
        }
        match bytes[at] {
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
                parts.push(Part::Variable { name: &sql[at + 1..at + 1 + len], offset: at, quoted: at < quoted });
                at += 1 + len;
                from = at;
            }
            _ => at += 1,
        }
    }
    parts.push(Part::Text(&sql[from..]));
    parts
}
