//! Which server a client connects to, by which address, and when again.

use crate::client::Client;
use crate::driver::{Address, Token};
use crate::error::EngineError;
use pgdyno_base::{Nanos, Prng};
use pgdyno_protocol::{Dialect, Endpoint, Target};
use std::collections::VecDeque;
use std::sync::Arc;

/// Connections that a worker makes at the same time.
const CONNECTING: usize = 32;
/// The first pause before a lost connection is made again.
const MIN_BACKOFF: Nanos = Nanos::from_millis(10);

/// See the module.
pub(super) struct Reach<P: Dialect> {
    /// The targets; clients are spread over them in turn.
    configs: Vec<Arc<P::Config>>,
    first_client: usize,
    /// Clients that wait for their turn to connect.
    pub waiting: VecDeque<Token>,
    /// Connections that are being made.
    pub connecting: usize,
    jitter: Prng,
}

impl<P: Dialect> Reach<P> {
    pub fn new(configs: Vec<Arc<P::Config>>, first_client: usize, clients: usize, jitter: Prng) -> Reach<P> {
        Reach { configs, first_client, waiting: (0..clients).collect(), connecting: 0, jitter }
    }

    /// The target of a client.
    pub fn config(&self, i: Token) -> &Arc<P::Config> {
        &self.configs[(self.first_client + i) % self.configs.len()]
    }

    /// The target's address; of a host with several, the `n`th, in turn.
    pub fn address(&self, i: Token, n: usize) -> Option<Address> {
        match self.config(i).endpoint() {
            Endpoint::Unix(path) => Some(Address::Unix(path.clone())),
            Endpoint::Tcp { addresses, .. } => Some(Address::Tcp(*addresses.get(n % addresses.len().max(1))?)),
        }
    }

    /// The `n`th address in words; of a single one the target's own.
    pub fn place(&self, i: Token, n: usize) -> String {
        match (self.config(i).endpoint(), self.address(i, n)) {
            (Endpoint::Tcp { addresses, .. }, Some(Address::Tcp(at))) if addresses.len() > 1 => {
                format!("{} port {}", at.ip(), at.port())
            }
            (endpoint, _) => endpoint.to_string(),
        }
    }

    /// Returns the number of addresses of a client's target.
    pub fn addresses(&self, i: Token) -> usize {
        match self.config(i).endpoint() {
            Endpoint::Unix(_) => 1,
            Endpoint::Tcp { addresses, .. } => addresses.len(),
        }
    }

    /// The next client that may connect.
    pub fn next(&mut self) -> Option<Token> {
        if self.connecting < CONNECTING { self.waiting.pop_front() } else { None }
    }

    /// Returns the error for a failed connection to the `n`th address.
    pub fn cannot_connect(&self, i: Token, n: usize, reason: String) -> EngineError {
        let classic = match (self.config(i).endpoint(), self.address(i, n)) {
            (Endpoint::Tcp { host, .. }, Some(Address::Tcp(at))) => {
                // Further members of a cluster are known by their addresses alone: the host's is the first one's.
                let other = host.parse::<std::net::IpAddr>().is_ok();
                let host = if other { at.ip().to_string() } else { host.clone() };
                Endpoint::Tcp { host, addresses: vec![at] }.classic_failure(&reason)
            }
            (endpoint, _) => endpoint.classic_failure(&reason),
        };
        EngineError::Connect { endpoint: self.place(i, n), classic, reason, errno: None }
    }

    /// Returns the error for a connection to the `n`th address that the operating system refused.
    pub fn refused(&self, i: Token, n: usize, error: &std::io::Error) -> EngineError {
        match self.cannot_connect(i, n, error.to_string()) {
            EngineError::Connect { endpoint, reason, classic, .. } => {
                EngineError::Connect { endpoint, reason, classic, errno: error.raw_os_error() }
            }
            other => other,
        }
    }

    /// The pause before the next attempt: 10 ms, doubling up to `longest` each time that all addresses have failed, each
    /// between half and all of it, so that clients that were lost together do not come back together.
    pub fn pause(&mut self, i: Token, client: &Client<P>, longest: Nanos) -> Nanos {
        let rounds = client.failures / self.addresses(i).max(1) as u32;
        let pause = Nanos(MIN_BACKOFF.0 << rounds.min(10)).0.min(longest.0);
        Nanos(self.jitter.range_u64(pause / 2, pause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_postgres::{Config, Postgres};

    #[test]
    fn a_failure_names_the_address_that_failed() {
        let addresses = vec!["10.0.0.1:5432".parse().unwrap(), "10.0.0.2:5433".parse().unwrap()];
        for (host, second) in [("10.0.0.1", "\"10.0.0.2\", port 5433"), ("db", "\"db\" (10.0.0.2), port 5433")] {
            let endpoint = Endpoint::Tcp { host: host.into(), addresses: addresses.clone() };
            let config = Config::plain(endpoint, "u", "d");
            let reach: Reach<Postgres> = Reach::new(vec![Arc::new(config)], 0, 1, Prng::from_seed(1));
            let EngineError::Connect { endpoint, classic, .. } =
                reach.cannot_connect(0, 1, "Connection refused".into())
            else {
                panic!("another error");
            };
            assert_eq!(endpoint, "10.0.0.2 port 5433");
            assert!(classic.contains(second), "{classic}");
        }
    }
}
