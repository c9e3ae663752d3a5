//! Scripts as a workload: pgbench's language, compiled.

use super::{Actor, Awaited, Cause, CommandInfo, Failure, Piece, Requests, Statement, Step, Workload, WorkloadOn};
use crate::shell;
use pgdyno_base::{Nanos, Prng};
use pgdyno_protocol::QueryMode;
use pgdyno_protocol::{Dialect, Effect, Given, Lexicon, ProtocolError};
use pgdyno_script::program::Capture;
use pgdyno_script::{EvalError, Flavour, Program, Sample, Scalar, ScriptError, Symbols, Value, Vm, vm};
use std::sync::{Arc, OnceLock};

/// A compiled script and how often it is chosen.
#[derive(Clone, Debug)]
pub struct Script {
    /// The program.
    pub program: Arc<Program>,
    /// Its weight among the scripts of its side.
    pub weight: u64,
    /// Side of a duet whose clients execute it; otherwise 0.
    pub side: usize,
}

/// Variables and samples of the clients of one side.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Variables that they begin with, over those that all have.
    pub variables: Vec<(String, Value)>,
    /// Samples that they pick from, in place of those of the same name.
    pub samples: Vec<Arc<Sample>>,
}

/// A transaction that is begun at a time, and not when its client is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// Its script.
    pub script: usize,
    /// Due time, counted from the moment when the first client is free for its first transaction.
    pub due: Nanos,
    /// The row of scheduled samples.
    pub row: u64,
}

/// Transactions of each client and their due times, used instead of weights.
#[derive(Debug, Default)]
struct Schedule {
    clients: Vec<Vec<Scheduled>>,
    /// Time at which the first client was free for its first transaction.
    begin: OnceLock<Nanos>,
}

/// Rest of a client without further transactions before it is asked again.
const FOR_LONG: Nanos = Nanos(3_600_000_000_000);

/// Maximum weight of a script, as in pgbench. The sum of all weights must fit the range of the random choice.
pub const MAX_WEIGHT: u64 = i32::MAX as u64;

/// One or more weighted scripts.
pub struct ScriptWorkload {
    shared: Arc<Shared>,
}

struct Shared {
    scripts: Vec<Script>,
    symbols: Arc<Symbols>,
    /// Scripts of each side, the sum of their weights, and the side's variables. Client `i` belongs to side `i %
    /// sides`.
    sides: Vec<(Vec<usize>, u64, Side)>,
    commands: Vec<CommandInfo>,
    /// Names under which commands are prepared.
    names: Vec<String>,
    /// The number of each script's first command.
    first: Vec<usize>,
    random_seed: u64,
    /// Effect of each command's statement on its transaction.
    effects: Vec<Effect>,
    schedule: Option<Schedule>,
}

impl ScriptWorkload {
    /// A workload of these scripts, compiled over `symbols`; `random_seed` becomes the variable of that name.
    pub fn new(scripts: Vec<Script>, symbols: Arc<Symbols>, random_seed: u64) -> Result<ScriptWorkload, String> {
        ScriptWorkload::of_sides(scripts, vec![Side::default()], symbols, random_seed)
    }

    /// Creates a workload like [`ScriptWorkload::new`], but for several sides, each with its own scripts.
    pub fn of_sides(
        scripts: Vec<Script>,
        sides: Vec<Side>,
        symbols: Arc<Symbols>,
        random_seed: u64,
    ) -> Result<ScriptWorkload, String> {
        if let Some(heavy) = scripts.iter().find(|s| s.weight > MAX_WEIGHT) {
            return Err(format!("the weight {} is too large: 0 to {MAX_WEIGHT}", heavy.weight));
        }
        let of_side = |(n, side)| {
            let own: Vec<usize> = (0..scripts.len()).filter(|i| scripts[*i].side == n).collect();
            let total = own.iter().map(|i| scripts[*i].weight).sum();
            (own, total, side)
        };
        let sides: Vec<(Vec<usize>, u64, Side)> = sides.into_iter().enumerate().map(of_side).collect();
        if sides.iter().any(|(_, total, _)| *total == 0) {
            return Err("the weights of the scripts add up to zero; give at least one a weight above 0".into());
        }
        let (mut commands, mut names, mut first, mut effects, mut statements) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new(), 0);
        for (i, script) in scripts.iter().enumerate() {
            first.push(commands.len());
            for (number, c) in script.program.commands.iter().enumerate() {
                let sql = c.statement.map(|n| &script.program.statements[n]);
                let lexicon = match script.program.flavour {
                    Flavour::Postgres => &Lexicon::POSTGRES,
                    Flavour::MySql => &Lexicon::MYSQL,
                };
                let effect = Effect::read(sql.map_or("", |s| &s.text), lexicon);
                effects.push(effect);
                commands.push(CommandInfo {
                    text: c.text.clone(),
                    sql: sql.map_or_else(|| c.text.clone(), |s| s.text.clone()),
                    name: c.name.clone(),
                    script: i,
                    number,
                    line: c.line,
                    is_sql: sql.is_some(),
                    effect,
                    reads: sql.is_some_and(|s| s.capture != Capture::Nothing),
                    parameters: sql.map_or(0, |s| s.parameters.len()),
                });
                names.push(format!("P_{statements}"));
                statements += usize::from(sql.is_some());
            }
        }
        let shared = Shared { scripts, symbols, sides, commands, names, first, random_seed, effects, schedule: None };
        Ok(ScriptWorkload { shared: Arc::new(shared) })
    }

    /// Returns the workload with a schedule: each client executes its own transactions at their times. Client `i`
    /// executes the i-th list of `clients`.
    pub fn scheduled(mut self, clients: Vec<Vec<Scheduled>>) -> Result<ScriptWorkload, String> {
        let shared = Arc::get_mut(&mut self.shared).ok_or("the workload is in use")?;
        if let Some(s) = clients.iter().flatten().find(|s| s.script >= shared.scripts.len()) {
            return Err(format!("the schedule names script {}, and there are {}", s.script, shared.scripts.len()));
        }
        shared.schedule = Some(Schedule { clients, begin: OnceLock::new() });
        Ok(self)
    }
}

impl<P: Dialect> WorkloadOn<P> for ScriptWorkload {
    fn actor(&self, client: usize, rng: Prng, default_seed: i64) -> Box<dyn Actor<P>> {
        let mut vm = Vm::new(&self.shared.symbols);
        let side = client % self.shared.sides.len();
        for (name, value) in &self.shared.sides[side].2.variables {
            vm.set(name, value.clone());
        }
        for sample in &self.shared.sides[side].2.samples {
            vm.use_sample(sample);
        }
        let mut default = |name: &str, value: i64| {
            if vm.get(name) == Some(&Value::Unset) {
                vm.set(name, Value::Int(value));
            }
        };
        default("client_id", client as i64);
        default("default_seed", default_seed);
        default("random_seed", self.shared.random_seed as i64);
        default("scale", 1);
        Box::new(ScriptActor {
            vm,
            shared: self.shared.clone(),
            at_begin: rng.clone(),
            rng,
            side,
            client,
            next: 0,
            current: 0,
            in_pipeline: false,
            sent: Sent::Statement(0),
            result: Captured::default(),
        })
    }
}

impl Workload for ScriptWorkload {
    fn scripts(&self) -> Vec<String> {
        self.shared.scripts.iter().map(|s| s.program.name.clone()).collect()
    }

    fn commands(&self) -> &[CommandInfo] {
        &self.shared.commands
    }

    fn locate(&self, command: usize, message: &str) -> ScriptError {
        let info = &self.shared.commands[command];
        self.shared.scripts[info.script].program.locate_command(info.number, message)
    }
}

/// Rows of a result that go into variables.
#[derive(Default)]
struct Captured {
    /// Names of the columns of the query at hand, if it has any.
    columns: Option<Vec<String>>,
    /// Its rows so far.
    rows: u64,
    /// The last of them.
    row: Vec<Option<Vec<u8>>>,
    /// It is whole: what comes next is of another query.
    complete: bool,
    /// Queries that are answered.
    queries: u32,
    /// The first column's name that no variable can have, and its query.
    unstorable: Option<(u32, String)>,
}

/// A client that carries out scripts.
pub struct ScriptActor {
    shared: Arc<Shared>,
    vm: Vm,
    rng: Prng,
    /// The stream as it was when the transaction began.
    at_begin: Prng,
    side: usize,
    client: usize,
    /// Number of the client's next transaction in a schedule.
    next: usize,
    current: usize,
    in_pipeline: bool,
    /// Requests that the last step has sent.
    sent: Sent,
    result: Captured,
}

/// Requests that a waiting step has sent.
#[derive(Clone, Copy)]
enum Sent {
    /// A statement, by its number in the script.
    Statement(usize),
    /// Preparations of a pipeline's statements: the first, and behind the last.
    Preparations(usize, usize),
}

impl ScriptActor {
    fn program(&self) -> &Program {
        &self.shared.scripts[self.current].program
    }

    /// A failure at a command of the current script.
    fn failure(&self, number: usize, place: ScriptError, cause: Cause, message: String) -> Box<Failure> {
        let name = self.program().commands.get(number).map_or(String::new(), |c| c.name.clone());
        Box::new(Failure { place, script: self.current, number, name, cause, message })
    }

    /// An expression, a shell command or the like has failed.
    fn at(&self, pc: usize, error: &EvalError) -> Box<Failure> {
        let program = self.program();
        let cause = Cause::MetaCommand(error.stage());
        self.failure(program.command_at(pc), program.locate(pc, error), cause, error.to_string())
    }

    /// A pipeline's command that cannot be carried out where it stands; messages call it `name`.
    fn misuse(&self, name: &str, message: &str) -> Box<Failure> {
        let number = self.vm.command(self.program());
        let place = self.program().locate_command(number, message);
        let failure = self.failure(number, place, Cause::Pipeline, message.into());
        Box::new(Failure { name: name.into(), ..*failure })
    }

    /// A result that cannot go into variables: `message` in our words.
    fn unread(&self, command: usize, cause: Cause, message: String) -> Box<Failure> {
        let number = self.shared.commands[command].number;
        let place = self.program().locate_command(number, &message);
        self.failure(number, place, cause, message)
    }

    #[inline]
    fn statement(&self, number: usize) -> Statement<'_> {
        let code = &self.program().statements[number];
        let command = self.shared.first[self.current] + code.command;
        let reads = code.capture != Capture::Nothing;
        Statement {
            command,
            slot: command,
            name: &self.shared.names[command],
            text: &code.prepared,
            parameters: code.parameters.len(),
            effect: self.shared.effects[command],
            reads,
            names: reads,
        }
    }

    /// Writes a statement; says how to go on.
    #[inline]
    fn send<P: Dialect>(&mut self, number: usize, requests: &mut Requests<'_, P>) -> Result<Step, Box<Failure>> {
        self.sent = Sent::Statement(number);
        let program = self.program();
        let statement = self.statement(number);
        if self.in_pipeline {
            let name = match program.statements[number].capture {
                Capture::Nothing => "",
                Capture::Last(_) => "gset",
                Capture::Each(_) => "aset",
            };
            if !name.is_empty() {
                return Err(self.misuse(name, &format!("\\{name} is not allowed in pipeline mode")));
            }
        }
        let vm = &self.vm;
        requests.statement(
            &statement,
            self.in_pipeline,
            |o| vm.substitute(program, number, o),
            |n, o| {
                let value = vm.parameter(program, number, n);
                let given = match value {
                    Value::Null | Value::Unset => return Given::Null,
                    Value::Bool(_) => Given::Boolean,
                    Value::Int(_) => Given::Integer,
                    Value::Double(_) => Given::Double,
                    Value::Text(_) | Value::Picked(_) => Given::Text,
                };
                value.write_text(o);
                given
            },
        );
        if self.in_pipeline {
            return Ok(Step::Again);
        }
        let command = statement.command;
        if statement.reads {
            self.result = Captured::default();
        }
        Ok(Step::Wait { command, what: Awaited::Statement })
    }

    /// Opens a pipeline; its statements are prepared first. Not within it: BEGIN ISOLATION LEVEL SERIALIZABLE must be the
    /// first to need a snapshot.
    fn start_pipeline<P: Dialect>(
        &mut self,
        first: usize,
        end: usize,
        requests: &mut Requests<'_, P>,
    ) -> Result<Option<Step>, Box<Failure>> {
        if !P::PIPELINES {
            return Err(self.misuse("startpipeline", "pipelines need PostgreSQL's protocol"));
        }
        if requests.protocol() == QueryMode::Simple {
            return Err(self.misuse("startpipeline", "cannot use pipeline mode with the simple query protocol"));
        }
        if std::mem::replace(&mut self.in_pipeline, true) {
            return Err(self.misuse("startpipeline", "already in pipeline mode"));
        }
        if requests.protocol() != QueryMode::Prepared {
            return Ok(None);
        }
        Ok(self.prepare(first, end, requests))
    }

    /// Prepares what is not prepared yet of some statements.
    fn prepare<P: Dialect>(&mut self, first: usize, end: usize, requests: &mut Requests<'_, P>) -> Option<Step> {
        self.sent = Sent::Preparations(first, end);
        let mut prepares = None;
        for number in first..end {
            let statement = self.statement(number);
            if !requests.is_prepared(statement.command) {
                requests.prepare(&statement);
                prepares.get_or_insert(statement.command);
            }
        }
        let command = prepares?;
        requests.sync(command);
        // libpq finds out when the pipeline ends.
        let ends = |c: &&CommandInfo| c.script == self.current && c.name.eq_ignore_ascii_case("endpipeline");
        let end = self.shared.commands[command..].iter().position(|c| ends(&c)).map_or(command, |n| command + n);
        Some(Step::Wait { command: end, what: Awaited::Preparation })
    }

    /// The command that the machine is at.
    fn position(&self) -> usize {
        self.shared.first[self.current] + self.vm.command(self.program())
    }

    fn in_pipeline(&self, name: &str) -> Result<(), Box<Failure>> {
        if self.in_pipeline { Ok(()) } else { Err(self.misuse(name, "not in pipeline mode")) }
    }

    fn shell(&mut self, shell: usize) -> Result<(), Box<Failure>> {
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
            Err(error) => Err(self.at(self.vm.pc() - 1, &error)),
        }
    }

    /// Shows what `debug()` was given, in pgbench's form.
    fn show_debug<P: Dialect>(&mut self, requests: &mut Requests<'_, P>) {
        let script = self.current;
        for (command, value) in self.vm.debug.drain(..) {
            let shown = match value {
                Scalar::Null => "null".to_owned(),
                other => format!("{} {}", other.type_name(), Value::from(other).text()),
            };
            requests.show(format!("debug(script={script},command={}): {shown}", command + 1));
        }
    }

    /// Stores the last row of the query at hand.
    fn store(&mut self, command: usize) {
        let shared = self.shared.clone();
        let info = &shared.commands[command];
        let program = &shared.scripts[info.script].program;
        let Some(number) = program.commands[info.number].statement else { return };
        let (Capture::Last(prefix) | Capture::Each(prefix)) = &program.statements[number].capture else { return };
        for (column, value) in self.result.columns.iter().flatten().zip(&self.result.row) {
            let name = format!("{prefix}{column}");
            // NULL is the empty text, as in pgbench.
            if !self.vm.capture(&name, value.as_deref().unwrap_or_default()) {
                self.result.unstorable.get_or_insert((self.result.queries, name));
                return;
            }
        }
    }

    fn captures_each(&self, command: usize) -> bool {
        let info = &self.shared.commands[command];
        let program = &self.shared.scripts[info.script].program;
        let statement = program.commands[info.number].statement;
        statement.is_some_and(|n| matches!(program.statements[n].capture, Capture::Each(_)))
    }

    /// A command's program and the number of its statement there; `None`: it is not SQL.
    fn code_of(&self, command: usize) -> Option<(&Program, usize)> {
        let info = &self.shared.commands[command];
        let program = &*self.shared.scripts[info.script].program;
        program.commands[info.number].statement.map(|local| (program, local))
    }

    /// Returns the text that is sent for `command`, or the name under which it is prepared.
    pub fn sent(&self, command: usize, protocol: QueryMode) -> String {
        let Some((program, local)) = self.code_of(command) else { return String::new() };
        match protocol {
            QueryMode::Simple => {
                let mut out = Vec::new();
                self.vm.substitute(program, local, &mut out);
                String::from_utf8_lossy(&out).into_owned()
            }
            QueryMode::Extended => program.statements[local].prepared.clone(),
            QueryMode::Prepared => self.shared.names[command].clone(),
        }
    }

    /// Its text, for an error's place in it; `None` where the server has the text from an earlier message.
    pub fn text(&self, command: usize, protocol: QueryMode, preparing: bool) -> Option<String> {
        self.code_of(command)?;
        match protocol {
            QueryMode::Prepared if !preparing => None,
            QueryMode::Prepared => Some(self.sent(command, QueryMode::Extended)),
            other => Some(self.sent(command, other)),
        }
    }
}

impl<P: Dialect> Actor<P> for ScriptActor {
    fn rest(&mut self, now: Nanos) -> Nanos {
        let Some(schedule) = &self.shared.schedule else { return Nanos::ZERO };
        let begin = *schedule.begin.get_or_init(|| now);
        match schedule.clients.get(self.client).and_then(|own| own.get(self.next)) {
            Some(next) => begin + next.due - now,
            None => FOR_LONG,
        }
    }

    fn begin(&mut self, choose: &mut Prng) -> usize {
        if let Some(schedule) = &self.shared.schedule
            && let Some(next) = schedule.clients.get(self.client).and_then(|own| own.get(self.next))
        {
            self.next += 1;
            self.vm.use_row(next.row);
            self.current = next.script;
            self.at_begin = self.rng.clone();
            return self.current;
        }
        let (own, total, _) = &self.shared.sides[self.side];
        let mut chosen = own[0];
        if own.len() > 1 {
            let mut w = choose.range_i64(0, *total as i64 - 1) as u64;
            for i in own {
                chosen = *i;
                if w < self.shared.scripts[*i].weight {
                    break;
                }
                w -= self.shared.scripts[*i].weight;
            }
        }
        self.current = chosen;
        self.at_begin = self.rng.clone();
        self.current
    }

    fn again(&mut self, requests: &mut Requests<'_, P>) -> Result<Step, Box<Failure>> {
        match self.sent {
            Sent::Statement(number) => self.send(number, requests),
            // Without a preparation that is left the pipeline goes on.
            Sent::Preparations(first, end) => Ok(self.prepare(first, end, requests).unwrap_or(Step::Again)),
        }
    }

    #[inline]
    fn step(&mut self, requests: &mut Requests<'_, P>) -> Result<Step, Box<Failure>> {
        loop {
            let shared = &self.shared;
            let program = &shared.scripts[self.current].program;
            let first = shared.first[self.current];
            let step = self.vm.step(program, &mut self.rng);
            if !self.vm.debug.is_empty() {
                self.show_debug(requests);
            }
            match step {
                Ok(vm::Step::Send(number)) => return self.send(number, requests),
                Ok(vm::Step::Mark(number)) => return Ok(Step::Mark(first + number)),
                Ok(vm::Step::Sleep(span)) => return Ok(Step::Sleep(span)),
                Ok(vm::Step::Shell(_)) if requests.dry_run => return Ok(Step::Again),
                Ok(vm::Step::Shell(n)) => return self.shell(n).map(|()| Step::Again),
                Ok(vm::Step::StartPipeline { first, end }) => {
                    if let Some(step) = self.start_pipeline(first, end, requests)? {
                        return Ok(step);
                    }
                }
                Ok(vm::Step::SyncPipeline) => {
                    self.in_pipeline("syncpipeline")?;
                    requests.sync(self.position());
                }
                Ok(vm::Step::EndPipeline) => {
                    self.in_pipeline("endpipeline")?;
                    self.in_pipeline = false;
                    let command = self.position();
                    requests.sync(command);
                    return Ok(Step::Wait { command, what: Awaited::Pipeline });
                }
                Ok(vm::Step::Done) if self.in_pipeline => {
                    let what = "the script ends inside a pipeline";
                    let number = requests.last.map_or(0, |c| self.shared.commands[c].number);
                    let mut place = self.program().locate_command(number, what);
                    place.hint = "End it with \\endpipeline.".into();
                    return Err(self.failure(number, place, Cause::LeftInPipeline, what.into()));
                }
                Ok(vm::Step::Done) => return Ok(Step::Done),
                Err(failure) => return Err(self.at(failure.pc, &failure.error)),
            }
        }
    }

    fn here(&self) -> usize {
        self.position()
    }

    fn read(&mut self, command: usize, piece: Piece<'_>) -> Result<(), ProtocolError> {
        if std::mem::take(&mut self.result.complete) {
            (self.result.columns, self.result.rows) = (None, 0);
            self.result.row.clear();
        }
        match piece {
            Piece::Columns(names) => self.result.columns = Some(names),
            Piece::Row(values) => {
                self.result.rows += 1;
                self.result.row = values.map(|v| v.map(<[u8]>::to_vec)).collect();
            }
            Piece::End => {
                if self.captures_each(command) && self.result.rows > 0 {
                    self.store(command);
                }
                self.result.queries += 1;
                self.result.complete = true;
            }
        }
        Ok(())
    }

    fn answered(&mut self, command: usize) -> Result<(), Box<Failure>> {
        if !self.captures_each(command) {
            let query = self.result.queries.max(1) - 1;
            let rows = if self.result.columns.is_some() { self.result.rows } else { 0 };
            if rows != 1 {
                let what = format!("expected one row, got {rows}");
                return Err(self.unread(command, Cause::Rows(query), what));
            }
            self.result.queries = query;
            self.store(command);
        }
        match self.result.unstorable.take() {
            None => Ok(()),
            Some((query, name)) => {
                let what = format!("no variable can be called \"{name}\": give the column a name (AS)");
                let how = if self.captures_each(command) { "aset" } else { "gset" };
                Err(self.unread(command, Cause::Name(query, how, name), what))
            }
        }
    }

    fn abandon(&mut self) {
        self.vm.restart();
        self.in_pipeline = false;
    }

    fn retry(&mut self) {
        self.vm.restart();
        self.rng = self.at_begin.clone();
        self.in_pipeline = false;
    }

    fn disconnected(&mut self) {
        self.in_pipeline = false;
    }

    fn as_script(&self) -> Option<&ScriptActor> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_postgres::Postgres;
    use pgdyno_script::{Options, compile};

    #[test]
    fn a_schedule_says_who_does_what_and_when() {
        let mut symbols = Symbols::default();
        let mut script = |name: &str| Script {
            program: Arc::new(compile(name, "select 1;\n", &mut symbols, Options::default()).unwrap()),
            weight: 1,
            side: 0,
        };
        let scripts = vec![script("a"), script("b")];
        let at = |script, due| Scheduled { script, due: Nanos(due), row: 0 };
        let of = |scripts: Vec<Script>| ScriptWorkload::new(scripts, Arc::new(Symbols::default()), 0).unwrap();
        let workload = of(scripts.clone()).scheduled(vec![vec![at(1, 0), at(0, 50)], vec![at(0, 20)]]).unwrap();
        let mut clients: Vec<_> =
            (0..3).map(|i| WorkloadOn::<Postgres>::actor(&workload, i, Prng::from_seed(1), 0)).collect();
        let mut choose = Prng::from_seed(2);
        // The run's begin is when the first client is free.
        assert_eq!(clients[0].rest(Nanos(1_000)), Nanos::ZERO);
        assert_eq!(clients[0].begin(&mut choose), 1);
        assert_eq!(clients[1].rest(Nanos(1_005)), Nanos(15));
        // What is late begins at once; who has nothing more to do rests.
        assert_eq!(clients[0].rest(Nanos(1_070)), Nanos::ZERO);
        assert_eq!(clients[0].begin(&mut choose), 0);
        assert_eq!(clients[0].rest(Nanos(1_080)), FOR_LONG);
        assert_eq!(clients[2].rest(Nanos(1_080)), FOR_LONG);
        assert!(of(scripts).scheduled(vec![vec![at(2, 0)]]).is_err());
    }
}
