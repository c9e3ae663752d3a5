//! The clients: which transaction, on which warehouse, when, and in how many round trips.

use crate::counts::Counted;
use crate::exchange::{Exchange, Question};
use crate::listing::{Pieces, is_read, lines_of, listing, text_of};
use crate::options::{Home, Options, RoundTrips};
use crate::random::Constants;
use crate::schema::DISTRICTS;
use crate::transactions::{Input, KINDS, Kind, Running, Statement as Written, Terms};
use pgdyno_base::{Nanos, Prng};
use pgdyno_engine::workload::{Actor, Awaited, Cause, CommandInfo, Failure, Piece, Requests, Statement, Step};
use pgdyno_engine::{QueryMode, Workload, WorkloadOn};
use pgdyno_protocol::{Dialect, Effect, Given, ProtocolError};
use pgdyno_script::ScriptError;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Keying time and mean think time in seconds, by transaction (clause 5.2.5.7).
const WAITS: [(f64, f64); 5] = [(18.0, 12.0), (3.0, 12.0), (2.0, 10.0), (2.0, 5.0), (2.0, 5.0)];
/// A think time is at most so many times its mean (clause 5.2.5.4).
const LONGEST_THINK: f64 = 10.0;
/// Cards of a deck, by transaction.
const DECK: [usize; 5] = [10, 10, 1, 1, 1];

/// TPC-C as a workload.
pub struct TpccWorkload {
    shared: Arc<Shared>,
}

struct Shared {
    sides: Vec<Side>,
    commands: Vec<CommandInfo>,
    /// Maximum number of prepared statements.
    slots: usize,
}

struct Side {
    options: Options,
    constants: Constants,
    /// The number of its first script, and of the first command of each.
    first_script: usize,
    first_commands: [usize; 5],
    /// Statements, indexed by set, transaction and statement number.
    statements: Vec<[Vec<Prepared>; 5]>,
    orders: Option<File>,
}

/// A statement as it is sent.
struct Prepared {
    slot: usize,
    name: String,
    text: String,
    effect: Effect,
    /// The text between its parameters.
    pieces: Pieces,
    parameters: usize,
    reads: bool,
}

impl TpccWorkload {
    /// Clients of several sides, which take turns: client `i` is of side `i % sides`.
    pub fn new(options: Vec<Options>) -> Result<TpccWorkload, String> {
        let (mut sides, mut commands, mut slots) = (Vec::new(), Vec::new(), 0);
        for o in options {
            if o.weights.iter().sum::<u64>() == 0 {
                return Err("the weights of the transactions add up to zero".into());
            }
            if o.warehouses == 0 || o.sets == 0 {
                return Err("there must be at least one warehouse".into());
            }
            if !matches!(o.isolation.as_str(), "" | "read committed" | "repeatable read" | "serializable") {
                return Err(format!(
                    "there is no isolation level \"{}\": read committed, repeatable read, serializable",
                    o.isolation
                ));
            }
            let first_script = sides.len() * KINDS.len();
            let mut first_commands = [0; 5];
            for (n, kind) in KINDS.iter().enumerate() {
                first_commands[n] = commands.len();
                let lines = lines_of(*kind, &o);
                for (number, ((name, _), line)) in kind.statements(o.as_function()).iter().zip(lines).enumerate() {
                    let sql = text_of(*kind, number, 0, &o);
                    commands.push(CommandInfo {
                        text: sql.clone(),
                        name: (*name).into(),
                        script: first_script + n,
                        number,
                        line,
                        is_sql: true,
                        effect: Effect::of(&sql),
                        reads: is_read(&sql),
                        parameters: Pieces::of(&sql).parameters(),
                        sql,
                    });
                }
            }
            let mut statements = Vec::new();
            for set in 0..o.sets {
                statements.push(KINDS.map(|kind| {
                    let prepared = |(number, _): (usize, &Written)| {
                        let text = text_of(kind, number, set, &o);
                        let pieces = Pieces::of(&text);
                        slots += 1;
                        Prepared {
                            slot: slots - 1,
                            name: format!("T_{}", slots - 1),
                            effect: Effect::of(&text),
                            parameters: pieces.parameters(),
                            pieces,
                            reads: is_read(&text),
                            text,
                        }
                    };
                    kind.statements(o.as_function()).iter().enumerate().map(prepared).collect()
                }));
            }
            let constants = Constants::of_seed(o.data_seed);
            let open = |path: &PathBuf| {
                let file = OpenOptions::new().append(true).create(true).open(path);
                file.map_err(|e| format!("cannot write {}: {e}", path.display()))
            };
            let orders = o.orders.as_ref().map(open).transpose()?;
            sides.push(Side { options: o, constants, first_script, first_commands, statements, orders });
        }
        Ok(TpccWorkload { shared: Arc::new(Shared { sides, commands, slots }) })
    }
}

impl<P: Dialect> WorkloadOn<P> for TpccWorkload {
    fn actor(&self, client: usize, rng: Prng, _: i64) -> Box<dyn Actor<P>> {
        let sides = self.shared.sides.len();
        Box::new(Client::new(self.shared.clone(), client % sides, client / sides, rng))
    }
}

impl Workload for TpccWorkload {
    fn scripts(&self) -> Vec<String> {
        self.shared.sides.iter().flat_map(|_| KINDS.map(|k| k.name().to_owned())).collect()
    }

    fn commands(&self) -> &[CommandInfo] {
        &self.shared.commands
    }

    fn slots(&self) -> usize {
        self.shared.slots
    }

    fn locate(&self, command: usize, message: &str) -> ScriptError {
        let info = &self.shared.commands[command];
        let name = KINDS[info.script % KINDS.len()].name();
        ScriptError::at(name, &info.sql, 0, message, "Are the tables those that pgdyno loads? pgdyno tpcc check tells.")
    }
}

/// A client.
struct Client {
    shared: Arc<Shared>,
    side: usize,
    /// Its number on its side.
    number: usize,
    rng: Prng,
    set: usize,
    terms: Terms,
    exchange: Exchange,
    /// The transaction that is chosen: its number in [`KINDS`], and what it is given.
    chosen: usize,
    input: Option<Input>,
    running: Option<Running>,
    /// Number of questions sent last. A pipeline is sent again as a whole.
    last: usize,
    /// Cards that are left, where transactions are dealt.
    deck: Vec<usize>,
    /// The transaction before and when it began, and the next, where the client rests between them.
    before: Option<usize>,
    began: Nanos,
    next: Option<usize>,
}

impl Client {
    fn new(shared: Arc<Shared>, side: usize, client: usize, rng: Prng) -> Client {
        let s = &shared.sides[side];
        let (warehouses, sets) = (u64::from(s.options.warehouses), u64::from(s.options.sets));
        let number = client;
        let client = client as u64;
        let place = match s.options.home {
            Home::Random => None,
            // Over the warehouses of the first set, then of the second, and then from the beginning.
            Home::Bound => Some((client % (warehouses * sets), None)),
            Home::Terminal => Some((client / DISTRICTS % (warehouses * sets), Some(client % DISTRICTS + 1))),
        };
        let terms = Terms {
            warehouses,
            constants: s.constants,
            warehouse: place.map(|(n, _)| n % warehouses + 1),
            district: place.and_then(|(_, d)| d),
        };
        let set = place.map_or(0, |(n, _)| (n / warehouses) as usize);
        Client {
            shared,
            side,
            number,
            rng,
            set,
            terms,
            exchange: Exchange::default(),
            chosen: 0,
            input: None,
            running: None,
            last: 0,
            deck: Vec::new(),
            before: None,
            began: Nanos::ZERO,
            next: None,
        }
    }

    fn side(&self) -> &Side {
        &self.shared.sides[self.side]
    }

    /// The next card of the deck.
    fn deal(&mut self) -> usize {
        if self.deck.is_empty() {
            self.deck = DECK.iter().enumerate().flat_map(|(n, cards)| vec![n; *cards]).collect();
            for i in (1..self.deck.len()).rev() {
                self.deck.swap(i, self.rng.range_u64(0, i as u64) as usize);
            }
        }
        self.deck.pop().unwrap_or(0)
    }

    /// A think time (clause 5.2.5.4): from a negative exponential distribution, cut at ten times its mean.
    fn think(&mut self, mean: f64) -> f64 {
        (-(1.0 - self.rng.f64()).ln()).min(LONGEST_THINK) * mean
    }

    fn command(&self, statement: usize) -> usize {
        self.side().first_commands[self.chosen] + statement
    }

    fn statement(&self, number: usize) -> Statement<'_> {
        let p = &self.side().statements[self.set][self.chosen][number];
        Statement {
            command: self.command(number),
            slot: p.slot,
            name: &p.name,
            text: &p.text,
            parameters: p.parameters,
            effect: p.effect,
            reads: p.reads,
            names: false,
        }
    }

    fn write<P: Dialect>(&self, q: Question<'_>, in_pipeline: bool, requests: &mut Requests<'_, P>) {
        let statement = self.statement(q.statement);
        let pieces = &self.side().statements[self.set][self.chosen][q.statement].pieces;
        debug_assert_eq!(statement.parameters, q.parameters(), "{}", statement.text);
        let whole = |o: &mut Vec<u8>| pieces.substitute(q, o);
        requests.statement(&statement, in_pipeline, whole, |n, o| {
            o.extend_from_slice(q.parameter(n));
            Given::Text
        });
    }

    /// Sends what is asked, if anything is left of it.
    fn send<P: Dialect>(&mut self, requests: &mut Requests<'_, P>) -> Option<Step> {
        let left = self.exchange.left();
        if left == 0 {
            return None;
        }
        let together = self.side().options.round_trips != RoundTrips::Statements
            && left > 1
            && requests.protocol() != QueryMode::Simple
            && P::PIPELINES;
        if !together {
            let mut command = 0;
            self.exchange.take(1, |q| {
                command = self.command(q.statement);
                self.write(q, false, requests);
            });
            self.last = 1;
            return Some(Step::Wait { command, what: Awaited::Statement });
        }
        if let Some(step) = self.prepare(requests) {
            return Some(step);
        }
        let mut command = 0;
        self.exchange.take(left, |q| {
            self.write(q, true, requests);
            command = self.command(q.statement);
        });
        self.last = left;
        requests.sync(command);
        Some(Step::Wait { command, what: Awaited::Pipeline })
    }

    /// Before a pipeline: each of its statements is prepared once.
    fn prepare<P: Dialect>(&mut self, requests: &mut Requests<'_, P>) -> Option<Step> {
        if requests.protocol() != QueryMode::Prepared {
            return None;
        }
        let mut missing: Vec<usize> = Vec::new();
        self.exchange.look(|q| {
            let slot = self.statement(q.statement).slot;
            if !requests.is_prepared(slot) && !missing.contains(&q.statement) {
                missing.push(q.statement);
            }
        });
        let command = self.command(*missing.first()?);
        missing.iter().for_each(|n| requests.prepare(&self.statement(*n)));
        requests.sync(command);
        self.last = 0;
        Some(Step::Wait { command, what: Awaited::Preparation })
    }

    fn failure(&self, message: &str) -> Box<Failure> {
        let (kind, side) = (KINDS[self.chosen], self.side());
        let hint = "Are the tables those that pgdyno loads? pgdyno tpcc check tells.";
        Box::new(Failure {
            place: ScriptError::at(kind.name(), &listing(kind, &side.options), 0, message, hint),
            script: side.first_script + self.chosen,
            number: 0,
            name: kind.name().into(),
            cause: Cause::Rows(0),
            message: message.into(),
        })
    }

    /// Appends the order that was acknowledged to the file, if there is one. Lines are short: each is one write, and
    /// stands whole among those of others.
    fn log_order(&self) -> Result<(), Box<Failure>> {
        let (Some(order), Some(mut file)) = (self.exchange.take_order(), self.side().orders.as_ref()) else {
            return Ok(());
        };
        let line =
            format!("{} {} {} {} {}\n", self.number, self.set + 1, order.warehouse, order.district, order.number);
        file.write_all(line.as_bytes()).map_err(|e| self.failure(&format!("cannot write down an order: {e}")))
    }

    fn forget(&mut self) {
        self.running = None;
        self.exchange.clear();
    }
}

impl<P: Dialect> Actor<P> for Client {
    fn rest(&mut self, now: Nanos) -> Nanos {
        let factor = self.side().options.waits;
        if factor == 0.0 || self.next.is_some() {
            self.began = now;
            return Nanos::ZERO;
        }
        let next = self.deal();
        self.next = Some(next);
        let think = self.before.map_or(0.0, |before| WAITS[before].1);
        // A delivery is deferred (clause 2.7.2): the terminal thinks while it is carried out, and is held up only where that
        // takes longer than the thinking.
        let deferred = self.before.is_some_and(|before| KINDS[before] == Kind::Delivery);
        let meanwhile = if deferred { (now - self.began).as_secs_f64() / factor } else { 0.0 };
        let rest = if self.before.is_none() {
            // So that not all come at once: as if each had been on its way for a while.
            self.rng.f64() * (WAITS[0].0 + WAITS[0].1)
        } else {
            (self.think(think) - meanwhile).max(0.0) + WAITS[next].0
        };
        Nanos::from_secs_f64(rest * factor)
    }

    fn begin(&mut self, choose: &mut Prng) -> usize {
        self.forget();
        let weights = self.side().options.weights;
        self.chosen = self.next.take().unwrap_or_else(|| {
            let mut w = choose.range_u64(0, weights.iter().sum::<u64>() - 1);
            weights
                .iter()
                .position(|weight| {
                    let here = w < *weight;
                    w = w.saturating_sub(*weight);
                    here
                })
                .unwrap_or(0)
        });
        self.before = Some(self.chosen);
        let side = &self.shared.sides[self.side];
        if side.options.home == Home::Random {
            self.set = self.rng.range_u64(0, u64::from(side.options.sets) - 1) as usize;
        }
        let input = KINDS[self.chosen].draw(&mut self.rng, &self.terms);
        input.count(&side.options.counts);
        self.input = Some(input);
        side.first_script + self.chosen
    }

    fn step(&mut self, requests: &mut Requests<'_, P>) -> Result<Step, Box<Failure>> {
        if self.running.is_none() {
            let options = &self.shared.sides[self.side].options;
            let (as_function, in_block) = (options.as_function(), !options.isolation.is_empty());
            let Some(input) = &self.input else { return Ok(Step::Done) };
            self.running = Some(input.run(self.exchange.clone(), as_function, in_block));
        } else if let Some(step) = self.send(requests) {
            return Ok(step);
        } else {
            self.exchange.all_answered();
        }
        let Some(running) = &mut self.running else { return Ok(Step::Done) };
        match running.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => {
                if !requests.is_dry_run() {
                    self.log_order()?;
                }
                if self.exchange.take_passed_over() {
                    self.side().options.counts.add(Counted::SkippedDeliveries, 1);
                }
                self.running = None;
                self.input = None;
                Ok(Step::Done)
            }
            Poll::Ready(Err(e)) => Err(self.failure(&e.0)),
            Poll::Pending => {
                let nothing = "the transaction waits for nothing; this is a defect of pgdyno";
                self.send(requests).ok_or_else(|| self.failure(nothing))
            }
        }
    }

    fn again(&mut self, requests: &mut Requests<'_, P>) -> Result<Step, Box<Failure>> {
        self.exchange.take_back(self.last);
        self.step(requests)
    }

    fn here(&self) -> usize {
        self.command(0)
    }

    fn abandon(&mut self) {
        self.forget();
        self.input = None;
    }

    fn retry(&mut self) {
        self.forget();
    }

    fn read(&mut self, _: usize, piece: Piece<'_>) -> Result<(), ProtocolError> {
        match piece {
            Piece::Columns(_) => {}
            Piece::Row(values) => self.exchange.row(values),
            Piece::End => self.exchange.end_of_rows(),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_postgres::Postgres;

    fn options() -> Options {
        Options::of_tests()
    }

    #[test]
    fn commands_stand_where_the_listing_has_them() {
        for round_trips in [RoundTrips::Statements, RoundTrips::Functions] {
            let o = Options { round_trips, isolation: "serializable".into(), ..options() };
            let workload = TpccWorkload::new(vec![o.clone()]).unwrap();
            for c in workload.commands() {
                let listing = listing(KINDS[c.script], &o);
                let lines: Vec<&str> = listing.lines().collect();
                assert_eq!(lines[c.line - 1].trim_end_matches(';'), c.sql);
                assert_eq!(lines[c.line - 2], format!("-- name: {}: {}", KINDS[c.script].name(), c.name));
            }
        }
    }

    #[test]
    fn sets_have_statements_of_their_own_and_share_commands() {
        let workload = TpccWorkload::new(vec![Options { sets: 3, ..options() }]).unwrap();
        assert_eq!(workload.slots(), 3 * workload.commands().len());
        let sides =
            TpccWorkload::new(vec![options(), Options { round_trips: RoundTrips::Functions, ..options() }]).unwrap();
        assert_eq!(sides.scripts().len(), 10);
        assert!(sides.commands().last().is_some_and(|c| c.script == 9));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (o, word) in [
            (Options { weights: [0; 5], ..options() }, "weights"),
            (Options { warehouses: 0, ..options() }, "warehouse"),
            (Options { isolation: "chaos; drop table x".into(), ..options() }, "isolation"),
        ] {
            assert!(TpccWorkload::new(vec![o]).is_err_and(|e| e.contains(word)));
        }
    }

    #[test]
    fn terminals_have_a_warehouse_and_a_district() {
        let workload = TpccWorkload::new(vec![Options { home: Home::Terminal, sets: 2, ..options() }]).unwrap();
        let client = |n| Client::new(workload.shared.clone(), 0, n, Prng::from_seed(1));
        let place = |n| (client(n).set, client(n).terms.warehouse, client(n).terms.district);
        assert_eq!(place(0), (0, Some(1), Some(1)));
        assert_eq!(place(19), (0, Some(2), Some(10)));
        assert_eq!(place(20), (1, Some(1), Some(1)));
        assert_eq!(place(40), (0, Some(1), Some(1)));
    }

    #[test]
    fn waits_are_the_standards() {
        let workload = TpccWorkload::new(vec![Options { waits: 1.0, home: Home::Terminal, ..options() }]).unwrap();
        let mut client = Client::new(workload.shared.clone(), 0, 0, Prng::from_seed(1));
        let mut choose = Prng::from_seed(2);
        let (mut seen, mut rests, mut least) = ([0u32; 5], [0f64; 5], [f64::MAX; 5]);
        let n = 23 * 400;
        for _ in 0..n {
            let before = client.before;
            let rest = Actor::<Postgres>::rest(&mut client, Nanos::ZERO).as_secs_f64();
            assert_eq!(Actor::<Postgres>::rest(&mut client, Nanos::ZERO), Nanos::ZERO, "asked again when it is over");
            let script = Actor::<Postgres>::begin(&mut client, &mut choose);
            seen[script] += 1;
            if let Some(before) = before {
                rests[before] += rest - WAITS[script].0;
                least[script] = least[script].min(rest);
            }
        }
        // By the deck the mix is exact.
        assert_eq!(seen, [4000, 4000, 400, 400, 400]);
        for (kind, (keying, think)) in WAITS.iter().enumerate() {
            let mean = rests[kind] / f64::from(seen[kind]);
            assert!((mean / think - 1.0).abs() < 0.2, "{kind}: {mean}");
            assert!(least[kind] >= *keying);
        }
    }

    #[test]
    fn a_terminal_thinks_while_its_delivery_is_carried_out() {
        let workload = TpccWorkload::new(vec![Options { waits: 1.0, home: Home::Terminal, ..options() }]).unwrap();
        let mut client = Client::new(workload.shared.clone(), 0, 0, Prng::from_seed(1));
        let (mut now, mut choose, mut seen) = (Nanos::ZERO, Prng::from_seed(2), 0);
        for _ in 0..2000 {
            now += Actor::<Postgres>::rest(&mut client, now);
            assert_eq!(Actor::<Postgres>::rest(&mut client, now), Nanos::ZERO);
            let script = Actor::<Postgres>::begin(&mut client, &mut choose);
            // Longer than any thinking of 5 s in the mean can be: only the keying is left.
            let took = if script == 3 { Nanos::from_secs(51) } else { Nanos::from_secs(1) };
            now += took;
            if script == 3 {
                let mut after = Client::new(workload.shared.clone(), 0, 0, client.rng.clone());
                (after.before, after.began, after.deck) = (client.before, client.began, client.deck.clone());
                let rest = Actor::<Postgres>::rest(&mut after, now).as_secs_f64();
                assert!(WAITS.iter().any(|(keying, _)| *keying == rest), "{rest}");
                seen += 1;
            }
        }
        assert!(seen > 50);
    }

    #[test]
    fn values_stand_in_the_text_of_the_simple_protocol() {
        let exchange = Exchange::default();
        exchange.ask(0, &[crate::exchange::Arg::Text(b"O'Brien"), crate::exchange::Arg::Int(5)]);
        exchange.take(1, |q| {
            let mut out = Vec::new();
            Pieces::of("select $2, $1 where $1 = 'x'").substitute(q, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), "select '5', 'O''Brien' where 'O''Brien' = 'x'");
        });
    }
}
