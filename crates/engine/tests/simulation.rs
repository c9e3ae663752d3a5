//! Deterministic simulation: a server with known latencies, stalls, deaths. What the engine says is held against what is
//! true.

mod common;

use common::{BLOCK, SELECT, simulate, simulate_and_look};
use pgdyno_base::{Nanos, Prng};
use pgdyno_engine::driver::sim::{Distortion, SimServer};
use pgdyno_engine::schedule::Arrivals;
use pgdyno_engine::{EngineError, EventKind, Limit, OnError, Plan, Rate, run};
use pgdyno_record::Phase;
use proptest::prelude::*;

const MS: u64 = 1_000_000;
/// The simulated run begins here, so that connecting lies before it.
const ORIGIN: Nanos = Nanos::from_secs(100);

fn seconds(s: u64) -> Limit {
    Limit::Duration(Nanos::from_secs(s))
}

/// A server that answers in 1 ms but for a stall: what arrives between 5 s and 7 s into the run is answered at 7 s.
fn stalling() -> SimServer {
    SimServer {
        latency: Box::new(|_, _, now| {
            let (from, to) = (ORIGIN + Nanos::from_secs(5), ORIGIN + Nanos::from_secs(7));
            let stall = if (from..to).contains(&now) { to - now } else { Nanos::ZERO };
            stall + Nanos::from_millis(1)
        }),
        ..SimServer::default()
    }
}

/// The true latencies of an open loop in that world, by a queue model that shares nothing with the engine but the
/// arrival times: transactions wait for the first free of `clients` connections, in order.
fn true_latencies(plan: &Plan) -> Vec<u64> {
    let rng = run::streams(plan).pop().unwrap().throttle;
    let end = ORIGIN + Nanos::from_secs(10);
    let mut arrivals = Arrivals::new(plan.rate.unwrap(), ORIGIN, end, rng);
    let mut free = vec![0u64; plan.clients];
    let mut latencies = Vec::new();
    while let Some(due) = arrivals.take(Nanos::MAX) {
        let first = (0..free.len()).min_by_key(|i| free[*i]).unwrap();
        let sent = due.0.max(free[first]);
        let (from, to) = ((ORIGIN + Nanos::from_secs(5)).0, (ORIGIN + Nanos::from_secs(7)).0);
        let answered = if (from..to).contains(&sent) { to + MS } else { sent + MS };
        free[first] = answered;
        latencies.push(answered - due.0);
    }
    latencies.sort_unstable();
    latencies
}

#[test]
fn an_open_loop_tells_the_truth_about_a_stall() {
    let plan = Plan { clients: 4, limit: seconds(10), rate: Some(Rate::poisson(1000.0)), seed: 7, ..Plan::default() };
    let (result, recorded) = simulate(stalling(), plan.clone(), SELECT);
    result.unwrap();
    recorded.check();
    let truth = true_latencies(&plan);
    let h = recorded.latency();
    assert_eq!(h.count() as usize, truth.len());
    for percent in [10.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 100.0] {
        let rank = ((percent / 100.0 * truth.len() as f64).ceil() as usize).max(1);
        let (want, got) = (truth[rank - 1] as f64, h.percentile(percent).0 as f64);
        assert!((got - want).abs() <= want * 1e-3, "p{percent}: {got} ns, the truth is {want} ns");
    }
    // A fifth of all arrivals fell into the stall and waited; the backlog behind it waited too.
    assert!(h.percentile(85.0) > Nanos::from_millis(100));
}

#[test]
fn a_closed_loop_does_not_see_the_stall_in_its_percentiles() {
    let plan = Plan { clients: 4, limit: seconds(10), seed: 7, ..Plan::default() };
    let (result, recorded) = simulate(stalling(), plan, SELECT);
    result.unwrap();
    recorded.check();
    let h = recorded.latency();
    // Four clients were stuck, so four slow transactions were seen: this is what "coordinated omission" hides.
    assert_eq!(h.percentile(99.9).0 / MS, 1);
    assert!(h.max() > Nanos::from_millis(1900));
    let measured = recorded.intervals.iter().filter(|i| i.slice.phase == Phase::Measure).count();
    assert_eq!(measured, 10, "no interval is missing, also not those of the stall");
    assert_eq!(
        recorded.intervals[5].outcomes.committed + recorded.intervals[6].outcomes.committed,
        0,
        "the stall is in the series"
    );
}

#[test]
fn a_closed_loop_is_exactly_as_fast_as_the_server() {
    let plan = Plan { clients: 3, limit: seconds(2), interval: Nanos::from_millis(500), ..Plan::default() };
    let (result, recorded) = simulate(SimServer::default(), plan, SELECT);
    result.unwrap();
    recorded.check();
    let measured: Vec<_> = recorded.intervals.iter().filter(|i| i.slice.phase == Phase::Measure).collect();
    assert_eq!(measured.len(), 4);
    for i in &measured[1..] {
        assert_eq!((i.outcomes.committed, i.statements), (1500, 1500));
    }
    assert_eq!(recorded.latency().percentile(99.0).0 / 1000, 1000);
}

#[test]
fn the_warm_up_is_recorded_and_not_counted() {
    let plan = Plan { clients: 1, limit: seconds(1), warmup: Nanos::from_millis(1500), ..Plan::default() };
    let (result, recorded) = simulate(SimServer::default(), plan, SELECT);
    result.unwrap();
    recorded.check();
    let of = |p| recorded.intervals.iter().filter(|i| i.slice.phase == p).map(|i| i.outcomes.committed).sum::<u64>();
    assert!((1498..=1500).contains(&of(Phase::Warmup)));
    assert!((999..=1001).contains(&of(Phase::Measure)));
}

#[test]
fn a_number_of_transactions_is_kept_exactly() {
    let plan = Plan { clients: 5, limit: Limit::Transactions(100), ..Plan::default() };
    let (result, recorded) = simulate(SimServer::default(), plan, BLOCK);
    result.unwrap();
    recorded.check();
    let outcomes = recorded.outcomes();
    assert_eq!((outcomes.scheduled, outcomes.committed), (500, 500));
    assert_eq!(recorded.sum(|i| i.statements), 1500);
}

#[test]
fn an_outage_is_survived_counted_and_seen() {
    let server = SimServer {
        outages: vec![(ORIGIN + Nanos::from_secs(3), ORIGIN + Nanos::from_secs(5))],
        ..SimServer::default()
    };
    let plan = Plan { clients: 8, limit: seconds(10), ..Plan::default() };
    let (result, recorded) = simulate(server, plan, SELECT);
    result.unwrap();
    recorded.check();
    let outcomes = recorded.outcomes();
    assert_eq!(recorded.sum(|i| i.lost), 8);
    assert_eq!(recorded.sum(|i| i.reconnects), 8);
    // A lone SELECT commits itself: nobody knows what became of the eight that were under way.
    assert_eq!((outcomes.unknown, outcomes.failed_total()), (8, 0));
    assert_eq!(recorded.intervals[4].outcomes.committed, 0);
    assert_eq!(recorded.intervals[4].disconnected, 8);
    assert!(recorded.intervals[9].outcomes.committed >= 7990, "back at full speed");
    assert!(recorded.events.iter().any(|e| e.kind == EventKind::ConnectionLost));
    assert!(recorded.events.iter().any(|e| e.kind == EventKind::Reconnected));
}

#[test]
fn what_a_lost_connection_means_depends_on_the_statement() {
    // Requests of one client: BEGIN, UPDATE, END, each 1 ms. The server dies while the UPDATE, or the END, is under way.
    for (at_ms, unknown, failed) in [(3000 * MS + MS / 2, 0, 1), (3001 * MS + MS / 2, 0, 1), (3002 * MS + MS / 2, 1, 0)]
    {
        let at = ORIGIN + Nanos(at_ms);
        let server = SimServer { outages: vec![(at, at + Nanos::from_millis(100))], ..SimServer::default() };
        let plan = Plan { clients: 1, limit: seconds(4), ..Plan::default() };
        let (result, recorded) = simulate(server, Plan { protocol: pgdyno_engine::QueryMode::Simple, ..plan }, BLOCK);
        result.unwrap();
        recorded.check();
        let outcomes = recorded.outcomes();
        assert_eq!((outcomes.unknown, outcomes.failed_total()), (unknown, failed), "death at {at_ms} ns");
        if failed == 1 {
            assert_eq!(outcomes.failed[b"08006"], 1);
        }
    }
}

#[test]
fn a_lost_connection_ends_the_run_where_that_is_wanted() {
    let server = SimServer { outages: vec![(ORIGIN + Nanos::from_secs(1), Nanos::MAX)], ..SimServer::default() };
    let plan = Plan { clients: 2, limit: seconds(4), reconnect: false, ..Plan::default() };
    let (result, recorded) = simulate(server, plan, SELECT);
    assert!(matches!(result, Err(EngineError::Lost(_))), "{result:?}");
    recorded.check();
    assert!(recorded.outcomes().committed > 1990, "what was measured before is there");
}

#[test]
fn failures_are_counted_by_sqlstate_and_roll_back() {
    let server = SimServer { fail: Box::new(|_, n| (n % 10 == 0).then_some("40001")), ..SimServer::default() };
    let plan = Plan { clients: 2, limit: seconds(2), protocol: pgdyno_engine::QueryMode::Simple, ..Plan::default() };
    let (result, recorded) = simulate(server, plan, BLOCK);
    result.unwrap();
    recorded.check();
    let outcomes = recorded.outcomes();
    assert!(outcomes.failed[b"40001"] > 100, "{outcomes:?}");
    assert!(outcomes.committed > 500);
    assert_eq!(
        recorded.events.iter().filter(|e| e.kind == EventKind::FirstError).count(),
        1,
        "reported once, counted always"
    );
}

#[test]
fn a_transaction_is_tried_again_behind_the_end_as_well() {
    // Every first request of a client is refused, however late; the second is not.
    let server = SimServer { fail: Box::new(|_, n| (n % 2 == 0).then_some("40P01")), ..SimServer::default() };
    let plan = Plan { clients: 3, limit: seconds(2), max_tries: 9, ..Plan::default() };
    let (result, recorded) = simulate(server, plan, SELECT);
    result.unwrap();
    recorded.check();
    let outcomes = recorded.outcomes();
    assert_eq!((outcomes.failed_total(), outcomes.unfinished), (0, 0), "{outcomes:?}");
    assert!(outcomes.committed > 1000 && outcomes.retried > 500, "{outcomes:?}");
    // One that never succeeds has not ended when nobody waits any longer.
    let always = || SimServer { fail: Box::new(|_, _| Some("40P01")), ..SimServer::default() };
    for rate in [None, Some(Rate::poisson(100.0))] {
        let plan = Plan { clients: 2, limit: seconds(2), max_tries: 0, rate, ..Plan::default() };
        let (result, recorded) = simulate(always(), plan.clone(), SELECT);
        result.unwrap();
        recorded.check();
        let outcomes = recorded.outcomes();
        assert_eq!((outcomes.committed, outcomes.failed_total()), (0, 0), "{outcomes:?}");
        assert!(outcomes.unfinished >= 2, "{outcomes:?}");
        // Without tries left it fails, at any time.
        let (result, recorded) = simulate(always(), Plan { max_tries: 1, ..plan }, SELECT);
        result.unwrap();
        recorded.check();
        assert!(recorded.outcomes().failed[b"40P01"] > 100 && recorded.outcomes().unfinished == 0);
    }
}

#[test]
fn a_statement_that_can_never_succeed_ends_the_run_with_its_place() {
    let server = SimServer { fail: Box::new(|_, _| Some("42P01")), ..SimServer::default() };
    let plan = Plan { clients: 1, limit: seconds(2), ..Plan::default() };
    let (result, recorded) = simulate(server, plan, SELECT);
    let Err(EngineError::Script(e)) = result else { panic!("{result:?}") };
    assert_eq!((e.file.as_str(), e.line), ("test.sql", 2));
    recorded.check();
}

#[test]
fn division_by_zero_ends_the_run_with_its_place() {
    let plan = Plan { clients: 1, limit: seconds(2), ..Plan::default() };
    let script = "\\set zero 0\n\\set x 10 / :zero\nSELECT :x;\n";
    let (result, recorded) = simulate(SimServer::default(), plan, script);
    let Err(EngineError::Script(e)) = result else { panic!("{result:?}") };
    assert_eq!((e.line, e.column, e.message.as_str()), (2, 8, "division by zero"));
    recorded.check();
}

#[test]
fn a_mute_server_is_not_waited_for_forever() {
    let plan = Plan { clients: 1, limit: seconds(2), connect_timeout: Nanos::from_secs(3), ..Plan::default() };
    let (result, _) = simulate(SimServer { mute: true, ..SimServer::default() }, plan, SELECT);
    let text = result.unwrap_err().to_string();
    assert!(text.contains("did not answer within 3.000 s"), "{text}");
}

#[test]
fn statements_that_never_end_are_cancelled_and_counted_as_unfinished() {
    let server = SimServer { latency: Box::new(|_, _, _| Nanos::from_secs(3600)), ..SimServer::default() };
    let plan = Plan { clients: 3, limit: seconds(1), drain_timeout: Nanos::from_secs(2), ..Plan::default() };
    let (result, recorded, mut cancels) = simulate_and_look(server, plan, SELECT);
    result.unwrap();
    recorded.check();
    assert_eq!(recorded.outcomes().unfinished, 3);
    cancels.sort_unstable();
    assert_eq!(cancels, [1, 2, 3]);
}

#[test]
fn an_open_loop_that_cannot_keep_up_says_what_it_skipped() {
    let server = SimServer { latency: Box::new(|_, _, _| Nanos::from_secs(1)), ..SimServer::default() };
    let plan = Plan {
        clients: 2,
        limit: seconds(5),
        rate: Some(Rate::poisson(100.0)),
        drain_timeout: Nanos::from_secs(3),
        ..Plan::default()
    };
    let (result, recorded) = simulate(server, plan, SELECT);
    result.unwrap();
    recorded.check();
    let outcomes = recorded.outcomes();
    assert!(outcomes.skipped > 450, "{outcomes:?}");
    assert!(recorded.intervals.iter().map(|i| i.lag.max()).max().unwrap() > Nanos::from_secs(4));
}

#[test]
fn a_script_without_statements_does_not_hang() {
    let plan = Plan { clients: 2, limit: Limit::Transactions(10), ..Plan::default() };
    let (result, recorded) = simulate(SimServer::default(), plan, "\\set x 1 + 1\n");
    result.unwrap();
    recorded.check();
    assert_eq!(recorded.outcomes().committed, 20);
}

/// A script that sends only sometimes must leave the clock, the intervals and the others their turn.
#[test]
fn a_script_that_sends_only_sometimes_does_not_stop_the_clock() {
    let plan = Plan { clients: 2, limit: Limit::Duration(Nanos::from_millis(50)), ..Plan::default() };
    let server = SimServer { latency: Box::new(|_, _, _| Nanos::from_millis(1)), ..SimServer::default() };
    let script = "\\if :client_id < 1\nSELECT 1;\n\\else\n\\sleep 1 ms\n\\endif\n";
    let (result, recorded) = simulate(server, plan, script);
    result.unwrap();
    recorded.check();
    assert!(recorded.outcomes().committed >= 98);
}

#[test]
fn a_transaction_left_open_is_no_success() {
    let plan = Plan { clients: 1, limit: seconds(1), protocol: pgdyno_engine::QueryMode::Simple, ..Plan::default() };
    let (result, recorded) = simulate(SimServer::default(), plan.clone(), "BEGIN;\nUPDATE t SET a = 1;\n");
    let Err(EngineError::Script(e)) = result else { panic!("{result:?}") };
    assert!(e.message.contains("inside a transaction block") && e.line == 2, "{e}");
    assert_eq!(recorded.outcomes().committed, 0);
    recorded.check();
    let (result, recorded) =
        simulate(SimServer::default(), Plan { on_error: OnError::Count, ..plan }, "BEGIN;\nUPDATE t SET a = 1;\n");
    result.unwrap();
    recorded.check();
    assert_eq!(recorded.outcomes().committed, 0);
    assert!(recorded.outcomes().failed[b"25001"] > 100);
}

#[test]
fn a_script_that_always_fails_does_not_exhaust_the_stack() {
    let plan = Plan { clients: 1, limit: Limit::Transactions(50_000), on_error: OnError::Count, ..Plan::default() };
    let (result, recorded) = simulate(SimServer::default(), plan, "\\set zero 0\n\\set x 1 / :zero\nSELECT :x;\n");
    result.unwrap();
    recorded.check();
    assert_eq!(recorded.outcomes().failed[b"XP001"], 50_000);
}

#[test]
fn a_run_that_ends_early_has_not_skipped_its_future() {
    let server = SimServer { fail: Box::new(|_, n| (n > 100).then_some("42P01")), ..SimServer::default() };
    let plan = Plan { clients: 4, limit: seconds(600), rate: Some(Rate::poisson(1000.0)), ..Plan::default() };
    let (result, recorded) = simulate(server, plan, SELECT);
    assert!(result.is_err());
    recorded.check();
    assert!(recorded.outcomes().scheduled < 200, "{:?}", recorded.outcomes());
}

#[test]
fn sleeping_takes_as_long_as_it_says() {
    let plan = Plan { clients: 1, limit: seconds(1), ..Plan::default() };
    let (result, recorded) = simulate(SimServer::default(), plan, "\\sleep 9 ms\nSELECT 1;\n");
    result.unwrap();
    recorded.check();
    assert_eq!(recorded.latency().percentile(50.0).0 / MS, 10);
    assert!((99..=100).contains(&recorded.intervals[0].outcomes.committed));
}

/// A server that breaks the protocol, in whatever way, has not answered: nothing of it counts as committed.
#[test]
fn what_breaks_the_protocol_is_never_a_success() {
    use Distortion::{Flood, MissingFirst, MissingReady, OnlyReady, SurplusReady, SurplusResult};
    for how in [Flood, MissingFirst, OnlyReady, SurplusResult, SurplusReady] {
        let server = SimServer { distort: Box::new(move |_, n| (n % 5 == 0).then_some(how)), ..SimServer::default() };
        let plan = Plan { clients: 2, limit: seconds(5), ..Plan::default() };
        let (result, recorded) = simulate(server, plan, SELECT);
        result.unwrap();
        recorded.check();
        let violations = recorded.sum(|i| i.violations);
        assert!(violations > 100, "{how:?}: {violations}");
        assert_eq!(recorded.sum(|i| i.lost), violations, "{how:?}: each ends its connection");
        assert!(recorded.events.iter().any(|e| e.kind == EventKind::ProtocolViolation), "{how:?}");
        // Each leaves a transaction in doubt: its own, or where the surplus comes behind it the next.
        assert_eq!((recorded.outcomes().unknown, recorded.outcomes().failed_total()), (violations, 0), "{how:?}");
    }
    // A server that has stopped in the middle of its answer is waited for, and says nothing.
    let server = SimServer { distort: Box::new(|_, _| Some(MissingReady)), ..SimServer::default() };
    let plan = Plan { clients: 2, limit: seconds(1), drain_timeout: Nanos::from_millis(100), ..Plan::default() };
    let (result, recorded) = simulate(server, plan, SELECT);
    result.unwrap();
    recorded.check();
    assert_eq!((recorded.outcomes().committed, recorded.outcomes().unfinished), (0, 2));
}

/// Nothing but ReadyForQuery, for ever: no transaction has been carried out.
#[test]
fn a_flood_of_ready_for_query_is_no_throughput() {
    for on_error in [OnError::EndRun, OnError::EndClient] {
        let server = SimServer { distort: Box::new(|_, _| Some(Distortion::Flood)), ..SimServer::default() };
        let plan = Plan { clients: 4, limit: seconds(2), on_error, ..Plan::default() };
        let (result, recorded) = simulate(server, plan, SELECT);
        result.unwrap();
        recorded.check();
        assert_eq!(recorded.outcomes().committed, 0);
        assert!(recorded.sum(|i| i.violations) >= 4);
    }
}

#[test]
fn what_was_sent_and_answered_decides_what_a_loss_means() {
    // One client, 1 ms each; the server dies at 3.0005 s: in the first request of a script, in the second ...
    for (script, offset_ms, unknown, failed) in [
        ("BEGIN \\; UPDATE t SET a = 1 \\; END;\n", 0, 1, 0),
        ("/* all of it */ UPDATE t SET a = 1;\n", 0, 1, 0),
        ("BEGIN;\n/* the end */ COMMIT;\n", 0, 0, 1),
        ("BEGIN;\n/* the end */ COMMIT;\n", 1, 1, 0),
        ("BEGIN;\nROLLBACK;\n", 1, 0, 1),
        ("BEGIN;\nUPDATE t SET a = 1 \\; COMMIT;\n", 1, 1, 0),
    ] {
        let at = ORIGIN + Nanos(3000 * MS + offset_ms * MS + MS / 2);
        let server = SimServer { outages: vec![(at, at + Nanos::from_millis(100))], ..SimServer::default() };
        let protocol = pgdyno_engine::QueryMode::Simple;
        let plan = Plan { clients: 1, limit: seconds(4), protocol, ..Plan::default() };
        let (result, recorded) = simulate(server, plan, script);
        result.unwrap();
        recorded.check();
        let o = recorded.outcomes();
        assert_eq!((o.unknown, o.failed_total()), (unknown, failed), "{script}");
    }
}

/// A client that thinks after its commit has committed, whatever becomes of its connection meanwhile; one that has more
/// to do has done a part.
#[test]
fn a_connection_that_is_lost_while_a_client_thinks() {
    for (script, committed, unknown, failed) in [
        ("BEGIN;\nCOMMIT;\n\\sleep 1 s\n", 1, 0, 0),
        ("UPDATE t SET a = 1;\n\\sleep 1 s\n", 1, 0, 0),
        ("UPDATE t SET a = 1;\n\\sleep 1 s\nUPDATE t SET b = 1;\n", 0, 1, 0),
        ("BEGIN;\n\\sleep 1 s\nCOMMIT;\n", 0, 0, 1),
        ("BEGIN;\nCOMMIT;\n\\sleep 1 s\n\\shell touch /nowhere/at/all\n", 0, 1, 0),
    ] {
        for protocol in [pgdyno_engine::QueryMode::Simple, pgdyno_engine::QueryMode::Prepared] {
            let at = ORIGIN + Nanos(500 * MS);
            let server = SimServer { outages: vec![(at, at + Nanos::from_secs(5))], ..SimServer::default() };
            let plan = Plan { clients: 1, limit: seconds(1), protocol, ..Plan::default() };
            let (result, recorded) = simulate(server, plan, script);
            result.unwrap();
            recorded.check();
            let o = recorded.outcomes();
            assert_eq!((o.committed, o.unknown, o.failed_total()), (committed, unknown, failed), "{script}");
        }
    }
}

#[test]
fn copy_is_refused_and_its_output_passed_over() {
    let simple = Plan { protocol: pgdyno_engine::QueryMode::Simple, limit: Limit::Transactions(20), ..Plan::default() };
    let (result, recorded) = simulate(SimServer::default(), simple.clone(), "COPY t TO STDOUT;\n");
    result.unwrap();
    recorded.check();
    assert_eq!(recorded.outcomes().committed, 20);
    let plan = Plan { on_error: OnError::Count, ..simple };
    let (result, recorded) = simulate(SimServer::default(), plan, "COPY t FROM STDIN;\n");
    result.unwrap();
    recorded.check();
    assert_eq!((recorded.outcomes().committed, recorded.outcomes().failed[b"57014"]), (0, 20));
}

#[test]
fn weights_that_would_give_a_script_nothing_are_refused() {
    use pgdyno_engine::{Script, ScriptWorkload};
    use pgdyno_script::{Options, Symbols, compile};
    use std::sync::Arc;
    let mut symbols = Symbols::default();
    let program = Arc::new(compile("a.sql", SELECT, &mut symbols, Options::default()).unwrap());
    let weigh = |weights: &[u64]| {
        let scripts =
            weights.iter().map(|weight| Script { program: program.clone(), weight: *weight, side: 0 }).collect();
        ScriptWorkload::new(scripts, Arc::new(Symbols::default()), 1).map(drop)
    };
    assert!(weigh(&[(1 << 63) - 1, (1 << 63) - 1]).unwrap_err().contains("too large"));
    assert!(weigh(&[0, 0]).unwrap_err().contains("add up to zero"));
    assert!(weigh(&[i32::MAX as u64, i32::MAX as u64, 0]).is_ok());
}

/// A script that sends nothing takes as long as its commands take.
#[test]
fn meta_commands_alone_take_time() {
    let plan = Plan { limit: Limit::Transactions(3), ..Plan::default() };
    let (result, recorded) = simulate(SimServer::default(), plan, "\\sleep 5 ms\n\\set x 1\n");
    result.unwrap();
    recorded.check();
    assert_eq!(recorded.latency().percentile(50.0).0 / MS, 5);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever the server does, the books balance, the series has no gaps, and the same seed gives the same run.
    #[test]
    fn the_books_always_balance(
        seed in any::<u64>(), clients in 1usize..9, rate in prop::option::of(50.0f64..3000.0),
        outages in prop::collection::vec((0u64..4_000, 1u64..1_500), 0..4), failing in 0u64..20, block in any::<bool>(),
        warmup in 0u64..1_500
    ) {
        let world = || SimServer {
            latency: { let mut rng = Prng::from_seed(seed); Box::new(move |_, _, _| Nanos(rng.range_u64(MS / 10, 20 * MS))) },
            fail: Box::new(move |_, n| (failing > 0 && n % (failing + 3) == 0).then_some("40P01")),
            outages: outages.iter().map(|(at, len)| {
                let from = ORIGIN + Nanos::from_millis(*at);
                (from, from + Nanos::from_millis(*len))
            }).collect(),
            fragment: Some(Prng::from_seed(seed)),
            short_writes: Some(Prng::from_seed(seed ^ 1)),
            chatter: Some(Prng::from_seed(seed ^ 2)),
            ..SimServer::default()
        };
        let plan = Plan {
            clients, rate: rate.map(Rate::poisson), seed, limit: seconds(3), warmup: Nanos::from_millis(warmup),
            interval: Nanos::from_millis(300), drain_timeout: Nanos::from_secs(1), ..Plan::default()
        };
        let script = if block { BLOCK } else { SELECT };
        let (result, recorded) = simulate(world(), plan.clone(), script);
        prop_assert!(result.is_ok(), "{:?}", result);
        recorded.check();
        let (_, again) = simulate(world(), plan, script);
        prop_assert_eq!(recorded.outcomes(), again.outcomes());
        prop_assert_eq!(recorded.latency().buckets(), again.latency().buckets());
    }
}
