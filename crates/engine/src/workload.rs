//! What clients do. Scripts are one kind of workload; a workload that needs loops is ordinary code behind the same traits.

use crate::plan::Protocol;
use pgdyno_base::Prng;
use pgdyno_script::program::Effect;
use pgdyno_script::{Program, ScriptError, Step, Value, Vm};
use pgdyno_wire::frontend;
use std::sync::Arc;

/// A statement as the engine and the reports see it.
#[derive(Clone, Debug)]
pub struct StatementInfo {
    /// As written.
    pub text: String,
    /// Index of its script.
    pub script: usize,
    /// Line in the script, from 1.
    pub line: usize,
    /// What it does to its transaction.
    pub effect: StatementEffect,
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

/// What all clients share.
pub trait Workload: Send + Sync {
    /// Names of the scripts.
    fn scripts(&self) -> Vec<String>;
    /// All statements, of all scripts.
    fn statements(&self) -> &[StatementInfo];
    /// A client's part. `rng` is its own stream of random numbers.
    fn actor(&self, client: usize, rng: Prng, default_seed: i64) -> Box<dyn Actor>;
    /// An error with the place of a statement in its script.
    fn locate(&self, statement: usize, message: &str) -> ScriptError;
}

/// What one client does.
pub trait Actor: Send {
    /// Begins a transaction; says of which script. `choose` is the worker's stream for choosing.
    fn begin(&mut self, choose: &mut Prng) -> usize;
    /// What to do next. Statements are numbered over the whole workload.
    fn step(&mut self) -> Result<Step, Box<ScriptError>>;
    /// Appends the messages that carry out `statement`; `prepare`: it is not prepared on this connection yet.
    fn encode(&self, statement: usize, protocol: Protocol, prepare: bool, out: &mut Vec<u8>);
    /// The transaction has failed; the next call is `begin`.
    fn abandon(&mut self);
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
    total_weight: u64,
    statements: Vec<StatementInfo>,
    /// Names under which statements are prepared.
    names: Vec<String>,
    /// The number of each script's first statement.
    first: Vec<usize>,
    random_seed: u64,
}

impl ScriptWorkload {
    /// A workload of these scripts; `random_seed` becomes the variable of that name.
    pub fn new(scripts: Vec<Script>, random_seed: u64) -> Result<ScriptWorkload, String> {
        let total_weight = scripts.iter().map(|s| s.weight).sum();
        if total_weight == 0 {
            return Err("the weights of the scripts add up to zero; give at least one a weight above 0".into());
        }
        let mut statements = Vec::new();
        let mut first = Vec::new();
        for (i, script) in scripts.iter().enumerate() {
            first.push(statements.len());
            for s in &script.program.statements {
                let effect = match s.effect {
                    Effect::Commits => StatementEffect::Commits,
                    Effect::RollsBack => StatementEffect::RollsBack,
                    Effect::Begins => StatementEffect::Begins,
                    Effect::Other => StatementEffect::Other,
                };
                statements.push(StatementInfo { text: s.text.clone(), script: i, line: s.line, effect });
            }
        }
        let names = (0..statements.len()).map(|i| format!("P{i}")).collect();
        Ok(ScriptWorkload { shared: Arc::new(Shared { scripts, total_weight, statements, names, first, random_seed }) })
    }
}

impl Workload for ScriptWorkload {
    fn scripts(&self) -> Vec<String> {
        self.shared.scripts.iter().map(|s| s.program.name.clone()).collect()
    }

    fn statements(&self) -> &[StatementInfo] {
        &self.shared.statements
    }

    fn actor(&self, client: usize, rng: Prng, default_seed: i64) -> Box<dyn Actor> {
        let vms = self.shared.scripts.iter().map(|s| {
            let mut vm = Vm::new(&s.program);
            let mut default = |name: &str, value: i64| {
                if vm.get(&s.program, name) == Some(&Value::Unset) {
                    vm.set(&s.program, name, Value::Int(value));
                }
            };
            default("client_id", client as i64);
            default("default_seed", default_seed);
            default("random_seed", self.shared.random_seed as i64);
            default("scale", 1);
            vm
        });
        Box::new(ScriptActor { vms: vms.collect(), shared: self.shared.clone(), rng, current: 0 })
    }

    fn locate(&self, statement: usize, message: &str) -> ScriptError {
        let script = self.shared.statements[statement].script;
        self.shared.scripts[script].program.locate_statement(statement - self.shared.first[script], message)
    }
}

struct ScriptActor {
    shared: Arc<Shared>,
    vms: Vec<Vm>,
    rng: Prng,
    current: usize,
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
        self.current
    }

    #[inline]
    fn step(&mut self) -> Result<Step, Box<ScriptError>> {
        let i = self.current;
        let step = self.vms[i].step(&self.shared.scripts[i].program, &mut self.rng)?;
        Ok(match step {
            Step::Send(n) => Step::Send(self.shared.first[i] + n),
            other => other,
        })
    }

    fn encode(&self, statement: usize, protocol: Protocol, prepare: bool, out: &mut Vec<u8>) {
        let shared = &*self.shared;
        let i = shared.statements[statement].script;
        let (program, vm) = (&*shared.scripts[i].program, &self.vms[i]);
        let local = statement - shared.first[i];
        let code = &program.statements[local];
        let name = match protocol {
            Protocol::Simple => {
                frontend::query_with(out, |o| vm.substitute(program, local, o));
                return;
            }
            Protocol::Extended => "",
            Protocol::Prepared => shared.names[statement].as_str(),
        };
        if prepare || protocol == Protocol::Extended {
            frontend::parse(out, name, &code.prepared);
        }
        frontend::bind(out, name, code.parameters.len(), |n, o| match vm.parameter(program, local, n) {
            Value::Null | Value::Unset => false,
            value => {
                value.write_text(o);
                true
            }
        });
        frontend::execute(out);
        frontend::sync(out);
    }

    fn abandon(&mut self) {
        self.vms[self.current].restart();
    }
}
