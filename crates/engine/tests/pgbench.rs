//! Deterministic simulation of what pgbench's semantics add: retries, limits, ends of clients, pipelines, captures.

mod common;

use common::{BLOCK, Recorded, SELECT, simulate};
use pgdyno_base::Nanos;
use pgdyno_engine::driver::sim::SimServer;
use pgdyno_engine::{EngineError, Limit, OnError, Plan, QueryMode, Rate, Voice};
use pgdyno_record::Phase;
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const ORIGIN: Nanos = Nanos::from_secs(100);

/// Returns a plan like that of `pgdyno pgbench`.
fn classic() -> Plan {
    Plan {
        protocol: QueryMode::Simple,
        limit: Limit::Transactions(100),
        on_error: OnError::EndClient,
        reconnect: false,
        begin_what_was_due: false,
        measure_until_done: true,
        drain_timeout: Nanos::from_secs(100_000),
        voice: Voice::Pgbench { verbose: true, debug: false },
        ..Plan::default()
    }
}

fn said<'t>(recorded: &'t Recorded, level: &str) -> Vec<&'t str> {
    recorded.events.iter().filter(|e| e.kind.as_str() == level).map(|e| e.text.as_str()).collect()
}

fn failing(every: u64, code: &'static str) -> SimServer {
    SimServer { fail: Box::new(move |_, n| (n % every == 0).then_some(code)), ..SimServer::default() }
}

#[test]
fn a_serialization_failure_is_tried_again() {
    let (result, recorded) = simulate(failing(10, "40001"), Plan { max_tries: 5, ..classic() }, SELECT);
    result.unwrap();
    recorded.check();
    let o = recorded.outcomes();
    assert_eq!((o.committed, o.failed_total()), (100, 0));
    assert!(o.retried >= 10 && o.retries == o.retried, "{o:?}");
    let errors = recorded
        .intervals
        .iter()
        .flat_map(|i| i.command_errors.values())
        .fold((0, 0), |(f, r), e| (f + e.failures, r + e.retries));
    assert_eq!(errors, (0, o.retries));
    let info = said(&recorded, "info");
    assert!(info[0].starts_with("client 0 got an error in command 1 (SQL) of script 0; ERROR:  "), "{info:?}");
    assert_eq!(info[1], "client 0 repeats the transaction after the error (try 1/5)");
    // The time of all tries counts.
    assert!(recorded.latency().max() >= Nanos::from_millis(2));
}

#[test]
fn tries_have_an_end() {
    let always = SimServer { fail: Box::new(|_, _| Some("40P01")), ..SimServer::default() };
    let (result, recorded) =
        simulate(always, Plan { max_tries: 3, limit: Limit::Transactions(7), ..classic() }, SELECT);
    result.unwrap();
    recorded.check();
    let o = recorded.outcomes();
    assert_eq!((o.committed, o.failed[b"40P01"], o.retried, o.retries), (0, 7, 7, 14));
    assert!(said(&recorded, "info").contains(&"client 0 ends the failed transaction (try 3/3)"));
    // Without a number, the limit of latency ends them: 1 ms each, so 11 tries.
    let always = SimServer { fail: Box::new(|_, _| Some("40001")), ..SimServer::default() };
    let limit = Some(Nanos::from_millis(10));
    let plan = Plan { max_tries: 0, latency_limit: limit, limit: Limit::Transactions(2), ..classic() };
    let (result, recorded) = simulate(always, plan, SELECT);
    result.unwrap();
    assert_eq!((recorded.outcomes().failed[b"40001"], recorded.outcomes().retries), (2, 20));
}

#[test]
fn a_block_is_rolled_back_before_it_is_tried_again() {
    // Requests: BEGIN, UPDATE (fails), ROLLBACK, BEGIN, UPDATE, END.
    let server = SimServer { fail: Box::new(|_, n| (n == 2).then_some("40001")), ..SimServer::default() };
    let plan = Plan { max_tries: 2, limit: Limit::Transactions(1), ..classic() };
    let (result, recorded) = simulate(server, plan, BLOCK);
    result.unwrap();
    recorded.check();
    assert_eq!((recorded.outcomes().committed, recorded.outcomes().retries), (1, 1));
    assert_eq!(recorded.latency().max().0 / MS, 6);
    assert_eq!(recorded.sum(|i| i.statements), 3, "statements of the try that failed are not counted");
}

#[test]
fn any_other_error_ends_its_client_alone() {
    let server = SimServer { fail: Box::new(|c, n| (c == 1 && n > 50).then_some("22012")), ..SimServer::default() };
    let (result, recorded) = simulate(server, Plan { clients: 3, ..classic() }, SELECT);
    result.unwrap();
    recorded.check();
    let o = recorded.outcomes();
    assert_eq!((recorded.sum(|i| i.aborted), o.unfinished, o.failed_total()), (1, 1, 0));
    assert!((200..300).contains(&o.committed), "{o:?}");
    assert!(said(&recorded, "error")[0].starts_with("client 1 script 0 aborted in command 1 query 0: ERROR:  "));
}

#[test]
fn the_end_of_a_client_can_end_the_run() {
    let server = SimServer { fail: Box::new(|c, n| (c == 1 && n > 50).then_some("22012")), ..SimServer::default() };
    let (result, recorded) = simulate(server, Plan { clients: 3, exit_on_abort: true, ..classic() }, SELECT);
    assert!(matches!(result, Err(EngineError::Aborted(0))), "{result:?}");
    recorded.check();
}

#[test]
fn errors_can_be_counted_instead() {
    let plan = Plan { on_error: OnError::EndClientUnlessSql, ..classic() };
    let (result, recorded) = simulate(failing(10, "22012"), plan, SELECT);
    result.unwrap();
    recorded.check();
    let o = recorded.outcomes();
    assert_eq!((o.committed + o.failed[b"22012"], o.retries, recorded.sum(|i| i.aborted)), (100, 0, 0));
    assert!(o.failed[b"22012"] >= 9);
}

#[test]
fn a_lost_connection_ends_its_client_or_is_made_again() {
    let outage = || vec![(ORIGIN + Nanos::from_millis(20), ORIGIN + Nanos::from_millis(40))];
    let (result, recorded) = simulate(SimServer { outages: outage(), ..SimServer::default() }, classic(), SELECT);
    result.unwrap();
    recorded.check();
    assert_eq!(recorded.sum(|i| i.aborted), 1);
    assert!(said(&recorded, "error")[0].contains("perhaps the backend died while processing"));
    let plan = Plan { reconnect: true, ..classic() };
    let (result, recorded) = simulate(SimServer { outages: outage(), ..SimServer::default() }, plan, SELECT);
    result.unwrap();
    recorded.check();
    assert_eq!((recorded.sum(|i| i.lost), recorded.sum(|i| i.reconnects), recorded.sum(|i| i.aborted)), (1, 1, 0));
    assert_eq!(recorded.outcomes().committed + recorded.outcomes().unknown, 100);
}

#[test]
fn what_is_too_late_is_skipped() {
    // 1 ms each, 2000 a second wanted of one client: half must be skipped, none may wait much longer than the limit.
    let plan = Plan {
        limit: Limit::Duration(Nanos::from_secs(5)),
        rate: Some(Rate::poisson(2000.0)),
        latency_limit: Some(Nanos::from_millis(20)),
        ..classic()
    };
    let (result, recorded) = simulate(SimServer::default(), plan, SELECT);
    result.unwrap();
    recorded.check();
    let o = recorded.outcomes();
    assert!((4900..5010).contains(&o.committed), "{o:?}");
    assert!((4500..5500).contains(&o.skipped), "{o:?}");
    assert!(recorded.latency().max() <= Nanos::from_millis(22));
    assert!(recorded.sum(|i| i.late) > 100);
    // Skipped ones count as transactions of a client.
    let plan = Plan {
        limit: Limit::Transactions(1000),
        rate: Some(Rate::poisson(2000.0)),
        latency_limit: Some(Nanos::from_millis(20)),
        ..classic()
    };
    let (_, recorded) = simulate(SimServer::default(), plan, SELECT);
    assert_eq!(recorded.outcomes().committed + recorded.outcomes().skipped, 1000);
}

#[test]
fn the_measurement_lasts_until_the_last_transaction_is_done() {
    let server = SimServer { latency: Box::new(|_, _, _| Nanos::from_millis(700)), ..SimServer::default() };
    let plan = Plan { limit: Limit::Duration(Nanos::from_secs(1)), ..classic() };
    let (result, recorded) = simulate(server, plan, SELECT);
    result.unwrap();
    recorded.check();
    assert!(recorded.intervals.iter().all(|i| i.slice.phase == Phase::Measure));
    assert_eq!(recorded.outcomes().committed, 2);
    assert_eq!(recorded.intervals.last().unwrap().slice.end.0 / MS, 1400);
}

#[test]
fn each_transaction_can_have_its_own_connection() {
    for rate in [None, Some(Rate::poisson(100.0))] {
        let plan = Plan { connect_each: true, clients: 3, rate, ..classic() };
        let (result, recorded) = simulate(SimServer::default(), plan, SELECT);
        result.unwrap();
        recorded.check();
        assert_eq!((recorded.outcomes().committed, recorded.sum(|i| i.connect.count())), (300, 300));
        assert_eq!(recorded.sum(|i| i.lost + i.disconnected), 0);
    }
}

#[test]
fn connections_of_their_own_are_lost_too() {
    let outages = vec![(ORIGIN + Nanos::from_millis(20), ORIGIN + Nanos::from_millis(500))];
    let plan = Plan { connect_each: true, clients: 3, ..classic() };
    let (result, recorded) =
        simulate(SimServer { outages: outages.clone(), ..SimServer::default() }, plan.clone(), SELECT);
    result.unwrap();
    recorded.check();
    assert_eq!(recorded.sum(|i| i.aborted), 3);
    let (result, recorded) =
        simulate(SimServer { outages, ..SimServer::default() }, Plan { reconnect: true, ..plan }, SELECT);
    result.unwrap();
    recorded.check();
    assert_eq!(recorded.sum(|i| i.aborted), 0);
    assert!(recorded.outcomes().committed >= 297);
}

const PIPELINE: &str = "\\startpipeline\nSELECT 1;\nSELECT 2;\n\\syncpipeline\nSELECT 3;\n\\endpipeline\nSELECT 4;\n";

#[test]
fn pipelines_are_sent_at_once_and_answered_in_order() {
    for protocol in [QueryMode::Extended, QueryMode::Prepared] {
        let plan = Plan { protocol, limit: Limit::Transactions(50), ..classic() };
        let (result, recorded) = simulate(SimServer::default(), plan, PIPELINE);
        result.unwrap();
        recorded.check();
        assert_eq!((recorded.outcomes().committed, recorded.sum(|i| i.statements)), (50, 200));
        let commands: Vec<u64> = (0..7).map(|n| recorded.sum(|i| i.command_latency[n].count())).collect();
        assert_eq!(commands, [0, 50, 50, 0, 50, 0, 50]);
        // Two syncs of the pipeline and one statement: three answers of 1 ms, and one more where the first prepares.
        assert_eq!(recorded.latency().percentile(50.0).0 / MS, 3, "{protocol:?}");
    }
}

#[test]
fn an_error_in_a_pipeline_is_recovered_from() {
    let plan = Plan { protocol: QueryMode::Extended, max_tries: 9, limit: Limit::Transactions(20), ..classic() };
    let (result, recorded) = simulate(failing(7, "40001"), plan, PIPELINE);
    result.unwrap();
    recorded.check();
    assert_eq!(recorded.outcomes().committed, 20);
    assert!(recorded.outcomes().retries > 5);
}

#[test]
fn results_are_captured() {
    let script =
        "SELECT 2 AS a \\gset x_\n\\set b debug(:x_a + 1)\nSELECT 1 \\; SELECT 2 AS a \\aset\n\\set c debug(:a)\n";
    for protocol in [QueryMode::Simple, QueryMode::Extended, QueryMode::Prepared] {
        let plan = Plan { limit: Limit::Transactions(1), protocol, ..classic() };
        let (result, recorded) = simulate(SimServer::default(), plan, script);
        result.unwrap();
        recorded.check();
        let shown = ["debug(script=0,command=2): int 3", "debug(script=0,command=4): int 2"];
        assert_eq!(said(&recorded, "output"), shown, "{protocol:?}");
    }
    let (_, recorded) = simulate(SimServer::default(), classic(), "SELECT 1 \\gset\n");
    assert_eq!(said(&recorded, "error")[0], "client 0 script 0 command 0 query 0: expected one row, got 0");
}

#[test]
fn commands_are_named_in_complaints() {
    for (script, want) in [
        ("\\set x 1 / 0\n", "client 0 aborted in command 0 (set) of script 0; evaluation of meta-command failed"),
        (
            "SELECT 1;\n\\sleep :no\n",
            "client 0 aborted in command 1 (sleep) of script 0; execution of meta-command failed",
        ),
        ("\\shell false\n", "client 0 aborted in command 0 (shell) of script 0; execution of meta-command failed"),
        ("\\endpipeline\n", "client 0 aborted in command 0 (endpipeline) of script 0; not in pipeline mode"),
    ] {
        let (result, recorded) = simulate(SimServer::default(), classic(), script);
        result.unwrap();
        recorded.check();
        assert_eq!(said(&recorded, "error").last(), Some(&want));
    }
}

#[test]
fn a_pipeline_that_is_sent_in_parts_may_lose_its_connection() {
    // Two statements of 70 kB: each is sent as soon as it is there. The server dies between them.
    let big = "x".repeat(70_000);
    let script = format!("\\\\startpipeline\nSELECT '{big}';\n\\\\shell sleep 0\nSELECT '{big}';\n\\\\endpipeline\n")
        .replace("\\\\", "\\");
    for at in [1_500, 2_000, 2_500, 10_300] {
        for reconnect in [false, true] {
            let from = ORIGIN + Nanos(at * 1_000);
            let outages = vec![(from, from + Nanos::from_millis(5))];
            let plan = Plan { protocol: QueryMode::Extended, limit: Limit::Transactions(20), reconnect, ..classic() };
            let (result, recorded) = simulate(SimServer { outages, ..SimServer::default() }, plan, &script);
            result.unwrap();
            recorded.check();
            assert_eq!(recorded.sum(|i| i.lost), 1);
            assert_eq!(recorded.sum(|i| i.aborted), u64::from(!reconnect));
        }
    }
}

/// The first part has failed before the rest is asked; the server passes over all of it.
#[test]
fn an_error_while_a_pipeline_is_filled_is_no_violation() {
    let big = "x".repeat(70_000);
    let script = format!("\\startpipeline\nSELECT '{big}';\n\\sleep 10 ms\nSELECT 2;\n\\endpipeline\n");
    for (on_error, want) in [(OnError::EndClientUnlessSql, 10), (OnError::Count, 10)] {
        let server = SimServer { early_error: Some("22012"), ..SimServer::default() };
        let plan = Plan { protocol: QueryMode::Extended, limit: Limit::Transactions(10), on_error, ..classic() };
        let (result, recorded) = simulate(server, plan, &script);
        result.unwrap();
        recorded.check();
        assert_eq!((recorded.sum(|i| i.violations), recorded.sum(|i| i.lost)), (0, 0));
        assert_eq!(recorded.outcomes().failed.get(b"22012"), Some(&want));
    }
}

#[test]
fn a_pipeline_may_begin_in_a_branch() {
    let script =
        "\\if :client_id = 0\n\\startpipeline\n\\else\n\\startpipeline\n\\endif\nSELECT 1;\nSELECT 2;\n\\endpipeline\n";
    let plan = Plan { protocol: QueryMode::Prepared, clients: 2, limit: Limit::Transactions(3), ..classic() };
    let (result, recorded) = simulate(SimServer::default(), plan, script);
    result.unwrap();
    recorded.check();
    assert_eq!((recorded.outcomes().committed, recorded.sum(|i| i.statements)), (6, 12));
    // Each statement is prepared once: the first transaction waits for that, the others do not.
    assert_eq!(recorded.latency().max().0 / MS, 2);
    assert_eq!(recorded.latency().percentile(50.0).0 / MS, 1);
}

#[test]
fn connections_of_their_own_are_not_tried_for_ever() {
    let outages = vec![(ORIGIN + Nanos::from_millis(500), Nanos::MAX)];
    let plan = Plan { connect_each: true, reconnect: true, limit: Limit::Duration(Nanos::from_secs(2)), ..classic() };
    let (result, recorded) = simulate(SimServer { outages, ..SimServer::default() }, plan, SELECT);
    result.unwrap();
    recorded.check();
    assert!(recorded.intervals.last().unwrap().slice.end < Nanos::from_secs(4));
}

/// The server closes the connections of clients that are connected and wait for the beginning.
#[test]
fn a_client_that_is_lost_before_the_beginning_does_not_begin() {
    for (each, clients) in [(false, 1), (false, 3), (true, 2)] {
        let outages = vec![(ORIGIN, ORIGIN + Nanos::from_millis(1))];
        let plan = Plan { clients, connect_each: each, limit: Limit::Transactions(30), ..classic() };
        let (result, recorded) = simulate(SimServer { outages, ..SimServer::default() }, plan, BLOCK);
        assert!(result.is_ok(), "{result:?}");
        recorded.check();
        assert_eq!(recorded.sum(|i| i.aborted), clients as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever goes wrong, transactions are accounted for, and nothing hangs.
    #[test]
    fn the_books_balance_here_too(
        clients in 1usize..6, tries in 0u32..4, every in 2u64..30, code in prop::sample::select(vec!["40001", "40P01", "22012", "42601"]),
        continues in any::<bool>(), reconnect in any::<bool>(), each in any::<bool>(), pipeline in any::<bool>(),
        protocol in prop::sample::select(vec![QueryMode::Simple, QueryMode::Extended, QueryMode::Prepared]),
        rate in prop::option::of(100.0f64..3000.0), limit in prop::option::of(1u64..50),
        outage in prop::option::of((0u64..900, 1u64..300)), seed in any::<u64>(), timed in any::<bool>()
    ) {
        let server = SimServer {
            fail: Box::new(move |_, n| (n % every == 0).then_some(code)),
            outages: outage.iter().map(|(at, len)| {
                let from = ORIGIN + Nanos::from_millis(*at);
                (from, from + Nanos::from_millis(*len))
            }).collect(),
            ..SimServer::default()
        };
        let plan = Plan {
            clients, seed, protocol, reconnect, connect_each: each, rate: rate.map(Rate::poisson),
            max_tries: if timed { tries } else { tries.max(1) },
            latency_limit: limit.map(Nanos::from_millis),
            limit: if timed { Limit::Duration(Nanos::from_secs(1)) } else { Limit::Transactions(30) },
            on_error: if continues { OnError::EndClientUnlessSql } else { OnError::EndClient },
            ..classic()
        };
        let script = if pipeline && protocol != QueryMode::Simple { PIPELINE } else { BLOCK };
        let (result, recorded) = simulate(server, plan, script);
        prop_assert!(result.is_ok(), "{:?}", result);
        recorded.check();
        for i in &recorded.intervals {
            let committed: u64 = i.by_script.iter().map(|o| o.committed).sum();
            prop_assert_eq!(committed, i.outcomes.committed);
        }
    }
}
