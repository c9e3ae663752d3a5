//! What the programs share.

/// Prints transactions and seconds; CPU time is measured from outside, over the whole process.
pub fn report(transactions: u64, seconds: f64) {
    println!("{transactions} {seconds:.6}");
}
