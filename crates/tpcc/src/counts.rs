//! What clients have drawn, and deliveries that passed a district over: the standard has ranges for both (clauses 5.5.1.5
//! and 2.7.4.2).

use std::sync::atomic::{AtomicU64, Ordering};

/// Kind of event that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names say it")]
pub enum Counted {
    NewOrders,
    RolledBackNewOrders,
    OrderLines,
    RemoteOrderLines,
    Payments,
    RemotePayments,
    PaymentsByName,
    OrderStatuses,
    OrderStatusesByName,
    Deliveries,
    SkippedDeliveries,
}

const NAMES: [&str; 11] = [
    "new_orders",
    "rolled_back_new_orders",
    "order_lines",
    "remote_order_lines",
    "payments",
    "remote_payments",
    "payments_by_name",
    "order_statuses",
    "order_statuses_by_name",
    "deliveries",
    "skipped_deliveries",
];

/// Counters that all clients of a side share.
#[derive(Debug, Default)]
pub struct Counts([AtomicU64; NAMES.len()]);

impl Counts {
    /// Adds to one.
    pub fn add(&self, what: Counted, n: usize) {
        self.0[what as usize].fetch_add(n as u64, Ordering::Relaxed);
    }

    /// All, by their names.
    pub fn named(&self) -> Vec<(&'static str, u64)> {
        NAMES.iter().zip(&self.0).map(|(name, n)| (*name, n.load(Ordering::Relaxed))).collect()
    }
}
