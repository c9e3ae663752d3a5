//! Which server a client connects to, by which address, and when again.

use crate::client::Client;
use crate::driver::{Address, Token};
use crate::error::EngineError;
use pgdyno_base::{Nanos, Prng};
use pgdyno_wire::{Config, Endpoint};
use std::collections::VecDeque;
use std::sync::Arc;

/// Connections that a worker makes at the same time.
const CONNECTING: usize = 32;
/// The first pause before a lost connection is made again.
const MIN_BACKOFF: Nanos = Nanos::from_millis(10);

/// See the module.
pub(super) struct Reach {
    /// The targets; clients are spread over them in turn.
    configs: Vec<Arc<Config>>,
    first_client: usize,
    /// Clients that wait for their turn to connect.
    pub waiting: VecDeque<Token>,
    /// Connections that are being made.
    pub connecting: usize,
    jitter: Prng,
}

impl Reach {
    pub fn new(configs: Vec<Arc<Config>>, first_client: usize, clients: usize, jitter: Prng) -> Reach {
        Reach { configs, first_client, waiting: (0..clients).collect(), connecting: 0, jitter }
    }

    /// The target of a client.
    pub fn config(&self, i: Token) -> &Arc<Config> {
        &self.configs[(self.first_client + i) % self.configs.len()]
    }

    /// The target's address; of a host with several, the `n`th, in turn.
    pub fn address(&self, i: Token, n: usize) -> Option<Address> {
        match &self.config(i).endpoint {
            Endpoint::Unix(path) => Some(Address::Unix(path.clone())),
            Endpoint::Tcp { addresses, .. } => Some(Address::Tcp(*addresses.get(n % addresses.len().max(1))?)),
        }
    }

    /// The `n`th address in words; of a single one the target's own.
    pub fn place(&self, i: Token, n: usize) -> String {
        match (&self.config(i).endpoint, self.address(i, n)) {
            (Endpoint::Tcp { addresses, .. }, Some(Address::Tcp(at))) if addresses.len() > 1 => {
                format!("{} port {}", at.ip(), at.port())
            }
            (endpoint, _) => endpoint.to_string(),
        }
    }

    /// How many addresses it has.
    pub fn addresses(&self, i: Token) -> usize {
        match &self.config(i).endpoint {
            Endpoint::Unix(_) => 1,
            Endpoint::Tcp { addresses, .. } => addresses.len(),
        }
    }

    /// The next client that may connect.
    pub fn next(&mut self) -> Option<Token> {
        if self.connecting < CONNECTING { self.waiting.pop_front() } else { None }
    }

    pub fn cannot_connect(&self, i: Token, reason: String) -> EngineError {
        let endpoint = &self.config(i).endpoint;
        EngineError::Connect { endpoint: endpoint.to_string(), classic: endpoint.classic_failure(&reason), reason }
    }

    /// The pause before the next attempt: 10 ms, doubling up to `longest` each time that all addresses have failed, each
    /// between half and all of it, so that clients that were lost together do not come back together.
    pub fn pause(&mut self, i: Token, client: &Client, longest: Nanos) -> Nanos {
        let rounds = client.failures / self.addresses(i).max(1) as u32;
        let pause = Nanos(MIN_BACKOFF.0 << rounds.min(10)).0.min(longest.0);
        Nanos(self.jitter.range_u64(pause / 2, pause))
    }
}
