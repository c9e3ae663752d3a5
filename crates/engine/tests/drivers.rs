//! One suite over all drivers: the same client tests on epoll, io_uring, the portable driver, against a server on a real
//! socket. The simulator has the same client under `simulation.rs`.

mod common;

use common::{BLOCK, SELECT, StubServer, Watcher, real, workload};
use pgdyno_base::Nanos;
use pgdyno_engine::plan::DriverKind;
use pgdyno_engine::{EngineError, Limit, Plan, QueryMode, run};
use std::sync::Arc;

fn kinds() -> Vec<(&'static str, DriverKind)> {
    let mut kinds = vec![("polling", DriverKind::Polling)];
    if cfg!(target_os = "linux") {
        kinds.push(("epoll", DriverKind::Epoll));
        // Some systems (containers, mostly) forbid io_uring; there the suite runs on the others.
        if pgdyno_engine::driver::uring::Uring::new(std::time::Instant::now()).is_ok() {
            kinds.push(("uring", DriverKind::Uring));
        }
    }
    kinds
}

fn on_all(test: impl Fn(&'static str, Plan)) {
    for (name, driver) in kinds() {
        test(name, Plan { driver, connect_timeout: Nanos::from_secs(20), ..Plan::default() });
    }
}

#[test]
fn transactions_run_in_every_protocol() {
    on_all(|name, plan| {
        for protocol in [QueryMode::Simple, QueryMode::Extended, QueryMode::Prepared] {
            let server = StubServer::start(&format!("{name}-protocols-{protocol:?}"));
            let plan = Plan { clients: 7, workers: 2, limit: Limit::Transactions(200), protocol, ..plan.clone() };
            let mut watcher = Watcher::default();
            let summary = real(server.config(), plan, workload(BLOCK), &mut watcher);
            assert!(summary.error.is_none(), "{name}: {:?}", summary.error);
            watcher.recorded.check();
            assert_eq!(watcher.recorded.outcomes().committed, 1400, "{name}, {protocol:?}");
            assert_eq!(watcher.recorded.sum(|i| i.statements), 4200);
        }
    });
}

#[test]
fn many_clients_connect_and_finish() {
    on_all(|name, plan| {
        let server = StubServer::start(&format!("{name}-many"));
        let plan = Plan { clients: 300, limit: Limit::Transactions(3), ..plan };
        let mut watcher = Watcher::default();
        let summary = real(server.config(), plan, workload(SELECT), &mut watcher);
        assert!(summary.error.is_none(), "{name}: {:?}", summary.error);
        assert_eq!(watcher.recorded.outcomes().committed, 900);
    });
}

#[test]
fn cut_connections_are_made_again() {
    on_all(|name, plan| {
        let server = Arc::new(StubServer::start(&format!("{name}-cut")));
        let plan = Plan {
            clients: 5,
            limit: Limit::Duration(Nanos::from_millis(1500)),
            interval: Nanos::from_millis(100),
            ..plan
        };
        let cutter = server.clone();
        let mut watcher = Watcher {
            on_interval: Some(Box::new(move |i| {
                if i.slice.index == 3 {
                    cutter.cut();
                }
            })),
            ..Watcher::default()
        };
        let summary = real(server.config(), plan, workload(SELECT), &mut watcher);
        assert!(summary.error.is_none(), "{name}: {:?}", summary.error);
        watcher.recorded.check();
        assert_eq!(watcher.recorded.sum(|i| i.lost), 5, "{name}");
        assert_eq!(watcher.recorded.sum(|i| i.reconnects), 5, "{name}");
        let last = watcher.recorded.intervals.iter().rev().nth(1).unwrap();
        assert!(last.outcomes.committed > 0, "{name}: back to work");
    });
}

/// Data and the end of the connection in one event: with edge-triggered readiness nobody tells of the end again.
#[test]
fn last_words_do_not_hide_the_end_of_a_connection() {
    on_all(|name, plan| {
        let server = Arc::new(StubServer::start(&format!("{name}-words")));
        let plan = Plan {
            clients: 20,
            limit: Limit::Duration(Nanos::from_millis(1500)),
            interval: Nanos::from_millis(50),
            drain_timeout: Nanos::from_secs(2),
            ..plan
        };
        let closer = server.clone();
        let mut watcher = Watcher {
            on_interval: Some(Box::new(move |i| {
                if i.slice.index % 5 == 2 && i.slice.index < 25 {
                    closer.shut_down();
                }
            })),
            ..Watcher::default()
        };
        let summary = real(server.config(), plan, workload(SELECT), &mut watcher);
        assert!(summary.error.is_none(), "{name}: {:?}", summary.error);
        watcher.recorded.check();
        assert_eq!(watcher.recorded.outcomes().unfinished, 0, "{name}: clients were stuck");
        assert!(watcher.recorded.sum(|i| i.lost) >= 80, "{name}: twenty clients, five times");
    });
}

/// Rows that nobody reads are passed over as they come: sixteen clients, a row of 1 GB each, and no memory for it.
#[test]
fn rows_of_a_gigabyte_need_no_memory() {
    let server = common::GiantServer::start("giant");
    let plan = Plan {
        clients: 16,
        limit: Limit::Transactions(1),
        drain_timeout: Nanos::from_secs(120),
        driver: DriverKind::Epoll,
        ..Plan::default()
    };
    let before = common::resident_bytes();
    let mut most = 0;
    let mut watcher = Watcher {
        on_interval: Some(Box::new(move |_| {
            most = most.max(common::resident_bytes());
            assert!(most < before + (100 << 20), "{} MB", (most - before) >> 20);
        })),
        ..Watcher::default()
    };
    let summary = real(server.config(), plan, workload("SELECT 1;"), &mut watcher);
    assert!(summary.error.is_none());
    assert_eq!(watcher.recorded.outcomes().committed, 16);
    assert!(common::resident_bytes() < before + (100 << 20));
}

/// Transactions that send nothing: on a real clock they take some time.
#[test]
fn what_sends_nothing_takes_time_all_the_same() {
    on_all(|name, plan| {
        let server = StubServer::start(&format!("{name}-nothing"));
        let plan = Plan { clients: 1, limit: Limit::Transactions(50), ..plan };
        let mut watcher = Watcher::default();
        real(server.config(), plan, workload("\\set x random(1, 10) * 2\n\\shell true\n"), &mut watcher);
        assert!(watcher.recorded.latency().percentile(50.0) > Nanos(100_000), "{name}: a shell needs longer");
    });
}

/// A script that only computes: on a real clock it must end with its time, and stop when asked.
#[test]
fn a_script_that_only_computes_ends_in_time() {
    on_all(|name, plan| {
        let server = StubServer::start(&format!("{name}-compute"));
        let plan = Plan { clients: 2, limit: Limit::Duration(Nanos::from_millis(200)), ..plan };
        let mut watcher = Watcher::default();
        let summary = real(server.config(), plan, workload("\\set x 1 + 1\n"), &mut watcher);
        assert!(summary.error.is_none(), "{name}");
        watcher.recorded.check();
        assert!(summary.elapsed < Nanos::from_secs(5), "{name}: {}", summary.elapsed);
    });
}

/// Checks that messages still pending on an old connection do not count against the new one.
#[test]
fn a_shutdown_does_not_fail_the_first_statement_afterwards() {
    on_all(|name, plan| {
        let server = Arc::new(StubServer::start(&format!("{name}-poison")));
        let plan = Plan {
            clients: 10,
            limit: Limit::Duration(Nanos::from_millis(800)),
            interval: Nanos::from_millis(50),
            ..plan
        };
        let closer = server.clone();
        let mut watcher = Watcher {
            on_interval: Some(Box::new(move |i| {
                if i.slice.index % 4 == 1 && i.slice.index < 14 {
                    closer.shut_down();
                }
            })),
            ..Watcher::default()
        };
        real(server.config(), plan, workload(SELECT), &mut watcher);
        watcher.recorded.check();
        let outcomes = watcher.recorded.outcomes();
        // Each loss ends at most one transaction; a poisoned successor would be one more.
        assert!(outcomes.unknown + outcomes.failed_total() <= watcher.recorded.sum(|i| i.lost), "{name}: {outcomes:?}");
    });
}

#[test]
fn a_run_can_be_stopped_and_keeps_what_it_has() {
    on_all(|name, plan| {
        let server = StubServer::start(&format!("{name}-stop"));
        let plan = Plan {
            clients: 3,
            workers: 2,
            limit: Limit::Duration(Nanos::from_secs(600)),
            interval: Nanos::from_millis(50),
            ..plan
        };
        let mut watcher = Watcher { stop_after_intervals: Some(4), ..Watcher::default() };
        let summary = real(server.config(), plan, workload(SELECT), &mut watcher);
        assert!(summary.interrupted && summary.error.is_none(), "{name}");
        assert_eq!(run::balance(&summary), 0, "{name}");
        assert!(summary.elapsed >= Nanos::from_millis(200) && summary.elapsed < Nanos::from_secs(60));
    });
}

#[test]
fn an_open_loop_keeps_its_rate() {
    on_all(|name, plan| {
        let server = StubServer::start(&format!("{name}-rate"));
        let plan = Plan {
            clients: 8,
            workers: 2,
            rate: Some(pgdyno_engine::Rate::poisson(2000.0)),
            limit: Limit::Duration(Nanos::from_secs(1)),
            seed: 3,
            ..plan
        };
        let mut watcher = Watcher::default();
        real(server.config(), plan, workload(SELECT), &mut watcher);
        watcher.recorded.check();
        let scheduled = watcher.recorded.outcomes().scheduled;
        // 2,000 expected, standard deviation 45; the seed makes it the same each time.
        assert!((1800..2200).contains(&scheduled), "{name}: {scheduled}");
        assert_eq!(watcher.recorded.sum(|i| i.lag.count()), watcher.recorded.outcomes().committed, "{name}");
    });
}

#[test]
fn an_agreed_start_is_kept() {
    on_all(|name, plan| {
        let server = StubServer::start(&format!("{name}-start"));
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
        let at = now + 400_000_000;
        let plan = Plan { clients: 2, start_at: Some(at), limit: Limit::Transactions(5), ..plan };
        let summary = real(server.config(), plan, workload(SELECT), &mut Watcher::default());
        assert_eq!(summary.start, at, "{name}");
        let after = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
        assert!(after >= at, "{name}");
    });
}

#[test]
fn no_server_is_a_clear_error() {
    on_all(|name, plan| {
        let config = pgdyno_postgres::Config::plain(pgdyno_postgres::Endpoint::Unix("/nonexistent/s".into()), "u", "d");
        let result =
            run::run::<pgdyno_postgres::Postgres>(plan, vec![config], workload(SELECT), &mut Watcher::default());
        assert!(matches!(result, Err(EngineError::Connect { .. })), "{name}: {result:?}");
    });
}

#[test]
fn more_clients_than_descriptors_is_a_clear_error() {
    let plan = Plan { clients: 50_000_000, ..Plan::default() };
    let result =
        run::run::<pgdyno_postgres::Postgres>(plan, vec![common::config()], workload(SELECT), &mut Watcher::default());
    let text = result.unwrap_err().to_string();
    assert!(text.contains("file descriptors") && text.contains("ulimit -n"), "{text}");
}

/// The series goes on for those that go on.
#[test]
fn a_worker_that_is_done_does_not_hold_up_the_others() {
    let server = StubServer::start("early");
    // Client 1 fails at once, and its worker with it.
    let text = "\\if :client_id = 1\n\\set x 1 / 0\n\\endif\n\\sleep 5 ms\nSELECT 1;\n";
    let plan = Plan {
        clients: 2,
        workers: 2,
        limit: Limit::Duration(Nanos::from_millis(600)),
        interval: Nanos::from_millis(100),
        on_error: pgdyno_engine::OnError::EndClient,
        ..Plan::default()
    };
    let seen_at = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (sink, start) = (seen_at.clone(), std::time::Instant::now());
    let mut watcher = Watcher {
        on_interval: Some(Box::new(move |_| sink.lock().unwrap().push(start.elapsed()))),
        ..Watcher::default()
    };
    real(
        server.config(),
        plan,
        common::compiled(text, pgdyno_script::Options { strict: false, ..Default::default() }),
        &mut watcher,
    );
    watcher.recorded.check();
    let seen_at = seen_at.lock().unwrap();
    let spread = *seen_at.last().unwrap() - seen_at[0];
    assert!(spread > std::time::Duration::from_millis(300), "all at once: {seen_at:?}");
}
