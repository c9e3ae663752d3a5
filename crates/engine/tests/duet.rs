//! Duets: two sides that take turns, in the simulated world.

mod common;

use common::simulate_workload;
use pgdyno_base::Nanos;
use pgdyno_engine::driver::sim::SimServer;
use pgdyno_engine::{Duet, Limit, Plan, Script, ScriptWorkload, Side};
use pgdyno_record::Phase;
use pgdyno_script::{Options, Symbols, Value, compile};
use std::collections::BTreeMap;
use std::sync::Arc;

const ORDER: [usize; 4] = [0, 1, 1, 0];

fn plan(turns: u64) -> Plan {
    Plan {
        clients: 4,
        interval: Nanos::from_millis(500),
        warmup: Nanos::from_millis(1200),
        limit: Limit::Duration(Nanos::from_millis(600 * (turns - 2))),
        duet: Some(Duet { transition: Nanos::from_millis(100), order: ORDER.to_vec(), sides: 2, together: false }),
        ..Plan::default()
    }
}

/// The first side's transactions take 1 ms, the other's `other` ms.
fn server(other: u64) -> SimServer {
    SimServer {
        latency: Box::new(move |client, _, _| Nanos::from_millis(if client % 2 == 0 { 1 } else { other })),
        ..SimServer::default()
    }
}

fn workload() -> Arc<ScriptWorkload> {
    let given = BTreeMap::from([("n".to_owned(), Value::Int(1))]);
    let mut symbols = Symbols::new(&given);
    let scripts = (0..2)
        .map(|side| {
            let program = compile("d.sql", "SELECT :n;", &mut symbols, Options::default()).unwrap();
            Script { program: Arc::new(program), weight: 1, side }
        })
        .collect();
    let sides = vec![Side::default(), Side { variables: vec![("n".into(), Value::Int(2))], ..Side::default() }];
    Arc::new(ScriptWorkload::of_sides(scripts, sides, Arc::new(symbols), 1).unwrap())
}

#[test]
fn one_side_at_a_time_is_under_load() {
    let (result, recorded, _) = simulate_workload(server(2), plan(10), workload());
    result.unwrap();
    recorded.check();
    let measured: Vec<_> = recorded.intervals.iter().filter(|i| i.slice.phase == Phase::Measure).collect();
    assert_eq!(measured.len(), 8);
    for i in measured {
        let side = ORDER[i.slice.turn as usize % 4];
        assert_eq!(i.by_script[1 - side].committed, 0, "turn {}", i.slice.turn);
        // Two clients on each side.
        assert_eq!(i.by_script[side].committed, [1000, 500][side], "turn {}", i.slice.turn);
    }
    // The other side's last transactions end in the transition, within one of its latencies.
    let transitions: Vec<_> = recorded.intervals.iter().filter(|i| i.slice.phase == Phase::Transition).collect();
    assert_eq!(transitions.len(), 8);
    for pair in recorded.intervals.windows(2).filter(|p| p[1].slice.phase == Phase::Transition) {
        let (before, side) = (ORDER[pair[0].slice.turn as usize % 4], ORDER[pair[1].slice.turn as usize % 4]);
        let strays = pair[1].by_script[1 - side].committed;
        assert_eq!(strays, if before == side { 0 } else { 2 }, "turn {}", pair[1].slice.turn);
    }
}

#[test]
fn a_transaction_that_outlives_its_turn_is_not_counted_to_the_other() {
    let (result, recorded, _) = simulate_workload(server(700), plan(10), workload());
    result.unwrap();
    recorded.check();
    let mut strays = 0;
    for i in recorded.intervals.iter().filter(|i| i.slice.phase == Phase::Measure) {
        let side = ORDER[i.slice.turn as usize % 4];
        if side == 0 {
            assert_eq!(i.by_script[0].committed, 1000);
            strays += i.by_script[1].committed;
        } else {
            assert_eq!(i.by_script[0].committed, 0);
        }
    }
    assert!(strays > 0, "they end in the other's turn, and are told apart");
}

#[test]
fn each_side_has_its_variables() {
    use pgdyno_base::Prng;
    use pgdyno_engine::{QueryMode, WorkloadOn};
    use pgdyno_postgres::Postgres;
    let workload = workload();
    let sent = |client: usize| {
        let mut actor = WorkloadOn::<Postgres>::actor(&*workload, client, Prng::from_seed(1), 0);
        let script = actor.begin(&mut Prng::from_seed(1));
        assert_eq!(script, client % 2);
        actor.as_script().unwrap().sent(script, QueryMode::Simple)
    };
    assert_eq!((sent(0), sent(1), sent(2)), ("SELECT 1;".into(), "SELECT 2;".into(), "SELECT 1;".into()));
}

#[test]
fn what_is_no_duet_is_refused() {
    let duet = |f: fn(&mut Plan)| {
        let mut plan = plan(10);
        f(&mut plan);
        plan.validate().unwrap_err().to_string()
    };
    assert!(duet(|p| p.clients = 3).contains("as many clients on each side"));
    assert!(duet(|p| p.connect_each = true).contains("closed loop"));
    assert!(duet(|p| p.duet.as_mut().unwrap().order.push(2)).contains("turns of these"));
    assert!(duet(|p| p.duet.as_mut().unwrap().transition = Nanos::ZERO).contains("transition"));
}

#[test]
fn both_sides_at_once_are_under_load_in_every_slice() {
    let mut plan = plan(10);
    plan.duet = Some(Duet { transition: Nanos::from_millis(100), order: vec![0], sides: 2, together: true });
    let (result, recorded, _) = simulate_workload(server(2), plan, workload());
    result.unwrap();
    recorded.check();
    let measured: Vec<_> = recorded.intervals.iter().filter(|i| i.slice.phase == Phase::Measure).collect();
    assert_eq!(measured.len(), 8);
    for i in measured {
        assert_eq!((i.by_script[0].committed, i.by_script[1].committed), (1000, 500), "turn {}", i.slice.turn);
    }
}
