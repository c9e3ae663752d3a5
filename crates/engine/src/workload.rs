//! What clients do. Scripts are one kind of workload; a workload that needs loops is ordinary code behind the same traits.

use crate::plan::Protocol;
use crate::shell;
use pgdyno_base::Prng;
use pgdyno_script::program::{Capture, Effect};
use pgdyno_script::{EvalError, Program, Scalar, ScriptError, Step, Symbols, Value, Vm};
use pgdyno_wire::frontend;
use std::sync::Arc;

/// A command as the engine and the reports see it.
#[derive(Clone, Debug)]
pub struct CommandInfo {
    /// Its first line, as pgbench shows it.
    pub text: String,
    /// The whole statement; of a meta-command the same as `text`.
    pub sql: String,
    /// `SQL`, or the meta-command's name.
    pub name: String,
    /// Index of its script.
    pub script: usize,
    /// Its number within the script, from 0.
    pub number: usize,
    /// Line in the script, from 1.
    pub line: usize,
    /// It is sent to the server.
    pub is_sql: bool,
    /// What it does to its transaction.
    pub effect: StatementEffect,
    /// What becomes of its result.
    pub capture: Capturing,
    /// Its parameters, in the extended and the prepared protocol.
    pub parameters: usize,
}

/// What a statement does to its transaction: decides what a lost connection means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementEffect {
    /// BEGIN, START TRANSACTION: commits nothing.
    Begins,
    /// COMMIT and the like.
    Commits,
    /// ROLLBACK: commits nothing.
    RollsBack,
    /// Outside a transaction block it commits itself.
    Other,
}

/// Which results of a statement go into variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capturing {
    /// None.
    Nothing,
    /// That of the last query, which must be one row.
    Last,
    /// The last row of each.
    Each,
}

/// How a statement is put into messages.
#[derive(Clone, Copy, Debug)]
pub struct Encoding {
    /// Which messages.
    pub protocol: Protocol,
    /// It is not prepared on this connection yet.
    pub prepare: bool,
    /// Ask for an answer now: not within a pipeline.
    pub sync: bool,
    /// Ask for the names of the columns.
    pub describe: bool,
}

/// Why a client's script cannot go on.
#[derive(Clone, Debug)]
pub struct ScriptFailure {
    /// The error with its place.
    pub place: ScriptError,
    /// The script.
    pub script: usize,
    /// The command, by its number in the script.
    pub number: usize,
    /// The command's name, as written.
    pub name: String,
    /// Which step of the command failed, in pgbench's words.
    pub stage: &'static str,
    /// The error itself; may be empty.
    pub message: String,
}

/// What all clients share.
pub trait Workload: Send + Sync {
    /// Names of the scripts.
    fn scripts(&self) -> Vec<String>;
    /// All commands, of all scripts.
    fn commands(&self) -> &[CommandInfo];
    /// A client's part. `rng` is its own stream of random numbers.
    fn actor(&self, client: usize, rng: Prng, default_seed: i64) -> Box<dyn Actor>;
    /// An error with the place of a command in its script.
    fn locate(&self, command: usize, message: &str) -> ScriptError;
}

/// What one client does. Commands are numbered over the whole workload.
pub trait Actor: Send {
    /// Begins a transaction; says of which script. `choose` is the worker's stream for choosing.
    fn begin(&mut self, choose: &mut Prng) -> usize;
    /// What to do next. [`Step::Send`] and [`Step::Mark`] name commands.
    fn step(&mut self) -> Result<Step, Box<ScriptFailure>>;
    /// The command that the last step came from.
    fn here(&self) -> usize;
    /// Carries out [`Step::Shell`]; blocks.
    fn shell(&mut self, shell: usize) -> Result<(), Box<ScriptFailure>>;
    /// The commands of a pipeline, by the numbers that [`Step::StartPipeline`] names.
    fn pipelined(&self, first: usize, end: usize) -> Vec<usize>;
    /// Appends the messages that carry out `command`.
    fn encode(&self, command: usize, how: Encoding, out: &mut Vec<u8>);
    /// Appends the message that prepares `command`.
    fn encode_prepare(&self, command: usize, out: &mut Vec<u8>);
    /// What is sent for `command`: its text, or the name that it is prepared as.
    fn sent(&self, command: usize, protocol: Protocol) -> String;
    /// Its text, for an error's place in it; `None` where the server has the text from an earlier message.
    fn text(&self, command: usize, protocol: Protocol, preparing: bool) -> Option<String>;
    /// Stores a row of a captured result; the name that no variable can have, if there is one.
    fn capture(&mut self, command: usize, columns: &[String], row: &[Option<Vec<u8>>]) -> Result<(), String>;
    /// What the script has asked to be shown, in pgbench's form.
    fn take_debug(&mut self) -> Vec<String>;
    /// The transaction has failed; the next call is `begin`.
    fn abandon(&mut self);
    /// The transaction is tried again, with the same random numbers.
    fn retry(&mut self);
}

/// A compiled script and how often it is chosen.
#[derive(Clone, Debug)]
pub struct Script {
    /// The program.
    pub program: Arc<Program>,
    /// Its weight among the scripts.
    pub weight: u64,
}

/// One or more weighted scripts.
pub struct ScriptWorkload {
    shared: Arc<Shared>,
}

struct Shared {
    scripts: Vec<Script>,
    symbols: Arc<Symbols>,
    total_weight: u64,
    commands: Vec<CommandInfo>,
    /// Names under which commands are prepared.
    names: Vec<String>,
    /// The number of each script's first command.
    first: Vec<usize>,
    random_seed: u64,
}

impl ScriptWorkload {
    /// A workload of these scripts, compiled over `symbols`; `random_seed` becomes the variable of that name.
    pub fn new(scripts: Vec<Script>, symbols: Arc<Symbols>, random_seed: u64) -> Result<ScriptWorkload, String> {
        let total_weight = scripts.iter().map(|s| s.weight).sum();
        if total_weight == 0 {
            return Err("the weights of the scripts add up to zero; give at least one a weight above 0".into());
        }
        let (mut commands, mut names, mut first, mut statements) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for (i, script) in scripts.iter().enumerate() {
            first.push(commands.len());
            for (number, c) in script.program.commands.iter().enumerate() {
                let sql = c.statement.map(|n| &script.program.statements[n]);
                commands.push(CommandInfo {
                    text: c.text.clone(),
                    sql: sql.map_or_else(|| c.text.clone(), |s| s.text.clone()),
                    name: c.name.clone(),
                    script: i,
                    number,
                    line: c.line,
                    is_sql: sql.is_some(),
                    effect: sql.map_or(StatementEffect::Other, |s| match s.effect {
                        Effect::Commits => StatementEffect::Commits,
                        Effect::RollsBack => StatementEffect::RollsBack,
                        Effect::Begins => StatementEffect::Begins,
                        Effect::Other => StatementEffect::Other,
                    }),
                    capture: sql.map_or(Capturing::Nothing, |s| match s.capture {
                        Capture::Nothing => Capturing::Nothing,
                        Capture::Last(_) => Capturing::Last,
                        Capture::Each(_) => Capturing::Each,
                    }),
                    parameters: sql.map_or(0, |s| s.parameters.len()),
                });
                names.push(format!("P_{statements}"));
                statements += usize::from(sql.is_some());
            }
        }
        let shared = Shared { scripts, symbols, total_weight, commands, names, first, random_seed };
        Ok(ScriptWorkload { shared: Arc::new(shared) })
    }
}

impl Workload for ScriptWorkload {
    fn scripts(&self) -> Vec<String> {
        self.shared.scripts.iter().map(|s| s.program.name.clone()).collect()
    }

    fn commands(&self) -> &[CommandInfo] {
        &self.shared.commands
    }

    fn actor(&self, client: usize, rng: Prng, default_seed: i64) -> Box<dyn Actor> {
        let mut vm = Vm::new(&self.shared.symbols);
        let mut default = |name: &str, value: i64| {
            if vm.get(name) == Some(&Value::Unset) {
                vm.set(name, Value::Int(value));
            }
        };
        default("client_id", client as i64);
        default("default_seed", default_seed);
        default("random_seed", self.shared.random_seed as i64);
        default("scale", 1);
        Box::new(ScriptActor { vm, shared: self.shared.clone(), at_begin: rng.clone(), rng, current: 0 })
    }

    fn locate(&self, command: usize, message: &str) -> ScriptError {
        let info = &self.shared.commands[command];
        self.shared.scripts[info.script].program.locate_command(info.number, message)
    }
}

struct ScriptActor {
    shared: Arc<Shared>,
    vm: Vm,
    rng: Prng,
    /// The stream as it was when the transaction began.
    at_begin: Prng,
    current: usize,
}

impl ScriptActor {
    fn program(&self) -> &Program {
        &self.shared.scripts[self.current].program
    }

    /// A command's program and the number of its statement there.
    #[inline]
    fn statement(&self, command: usize) -> (&Program, usize) {
        let info = &self.shared.commands[command];
        let program = &*self.shared.scripts[info.script].program;
        (program, program.commands[info.number].statement.expect("only SQL is sent"))
    }

    fn failure(&self, pc: usize, error: &EvalError) -> Box<ScriptFailure> {
        let program = self.program();
        let number = program.command_at(pc);
        Box::new(ScriptFailure {
            place: program.locate(pc, error),
            script: self.current,
            number,
            name: program.commands.get(number).map_or(String::new(), |c| c.name.clone()),
            stage: error.stage(),
            message: error.to_string(),
        })
    }
}

impl Actor for ScriptActor {
    fn begin(&mut self, choose: &mut Prng) -> usize {
        if self.shared.scripts.len() > 1 {
            let mut w = choose.range_i64(0, self.shared.total_weight as i64 - 1) as u64;
            self.current = 0;
            while w >= self.shared.scripts[self.current].weight {
                w -= self.shared.scripts[self.current].weight;
                self.current += 1;
            }
        }
        self.at_begin = self.rng.clone();
        self.current
    }

    #[inline]
    fn step(&mut self) -> Result<Step, Box<ScriptFailure>> {
        let program = &self.shared.scripts[self.current].program;
        let first = self.shared.first[self.current];
        match self.vm.step(program, &mut self.rng) {
            Ok(Step::Send(n)) => Ok(Step::Send(first + program.statements[n].command)),
            Ok(Step::Mark(n)) => Ok(Step::Mark(first + n)),
            Ok(other) => Ok(other),
            Err(failure) => Err(self.failure(failure.pc, &failure.error)),
        }
    }

    fn here(&self) -> usize {
        self.shared.first[self.current] + self.vm.command(self.program())
    }

    fn shell(&mut self, shell: usize) -> Result<(), Box<ScriptFailure>> {
        let program = self.shared.scripts[self.current].program.clone();
        let assign = program.shells[shell].assign;
        let name = self.vm.shell_name(&program, shell);
        let reads = program.shells[shell].reads;
        let done = self.vm.shell_command(&program, shell).and_then(|command| shell::run(&name, &command, reads));
        match done {
            Ok(value) => {
                if let Some(slot) = assign {
                    self.vm.assign(slot, Value::Int(value));
                }
                Ok(())
            }
            // The machine stands behind the shell's instruction.
            Err(error) => Err(self.failure(self.vm.pc() - 1, &error)),
        }
    }

    fn pipelined(&self, first: usize, end: usize) -> Vec<usize> {
        let base = self.shared.first[self.current];
        self.program().statements[first..end].iter().map(|s| base + s.command).collect()
    }

    #[inline]
    fn encode(&self, command: usize, how: Encoding, out: &mut Vec<u8>) {
        let (program, local) = self.statement(command);
        let code = &program.statements[local];
        let name = match how.protocol {
            Protocol::Simple => {
                frontend::query_with(out, |o| self.vm.substitute(program, local, o));
                return;
            }
            Protocol::Extended => "",
            Protocol::Prepared => self.shared.names[command].as_str(),
        };
        if how.prepare || how.protocol == Protocol::Extended {
            frontend::parse(out, name, &code.prepared);
        }
        frontend::bind(out, name, code.parameters.len(), |n, o| match self.vm.parameter(program, local, n) {
            Value::Null | Value::Unset => false,
            value => {
                value.write_text(o);
                true
            }
        });
        if how.describe {
            frontend::describe(out);
        }
        frontend::execute(out);
        if how.sync {
            frontend::sync(out);
        }
    }

    fn encode_prepare(&self, command: usize, out: &mut Vec<u8>) {
        let (program, local) = self.statement(command);
        frontend::parse(out, &self.shared.names[command], &program.statements[local].prepared);
    }

    fn sent(&self, command: usize, protocol: Protocol) -> String {
        let (program, local) = self.statement(command);
        match protocol {
            Protocol::Simple => {
                let mut out = Vec::new();
                self.vm.substitute(program, local, &mut out);
                String::from_utf8_lossy(&out).into_owned()
            }
            Protocol::Extended => program.statements[local].prepared.clone(),
            Protocol::Prepared => self.shared.names[command].clone(),
        }
    }

    fn text(&self, command: usize, protocol: Protocol, preparing: bool) -> Option<String> {
        match protocol {
            Protocol::Prepared if !preparing => None,
            Protocol::Prepared => Some(self.sent(command, Protocol::Extended)),
            other => Some(self.sent(command, other)),
        }
    }

    fn capture(&mut self, command: usize, columns: &[String], row: &[Option<Vec<u8>>]) -> Result<(), String> {
        let shared = self.shared.clone();
        let info = &shared.commands[command];
        let program = &shared.scripts[info.script].program;
        let statement = &program.statements[program.commands[info.number].statement.expect("only SQL has results")];
        let (Capture::Last(prefix) | Capture::Each(prefix)) = &statement.capture else { return Ok(()) };
        for (column, value) in columns.iter().zip(row) {
            let name = format!("{prefix}{column}");
            // NULL is the empty text, as in pgbench.
            if !self.vm.capture(&name, value.as_deref().unwrap_or_default()) {
                return Err(name);
            }
        }
        Ok(())
    }

    fn take_debug(&mut self) -> Vec<String> {
        if self.vm.debug.is_empty() {
            return Vec::new();
        }
        let script = self.current;
        let show = |(command, value): (usize, Scalar)| {
            let shown = match value {
                Scalar::Null => "null".to_owned(),
                other => format!("{} {}", other.type_name(), Value::from(other).text()),
            };
            format!("debug(script={script},command={}): {shown}", command + 1)
        };
        self.vm.debug.drain(..).map(show).collect()
    }

    fn abandon(&mut self) {
        self.vm.restart();
    }

    fn retry(&mut self) {
        self.vm.restart();
        self.rng = self.at_begin.clone();
    }
}
