//! The script machine alone: `vm SCRIPT TRANSACTIONS` prints nanoseconds per transaction.

use pgdyno_base::Prng;
use pgdyno_script::{Options, Step, Symbols, Value, Vm, compile};
use std::sync::Arc;
use std::time::Instant;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, path, n] = args.as_slice() else { panic!("usage: vm SCRIPT TRANSACTIONS") };
    let text = std::fs::read_to_string(path).expect("a readable script");
    let n: u64 = n.parse().expect("a number of transactions");
    let variables = [("scale".to_owned(), Value::Int(100)), ("default_seed".to_owned(), Value::Int(1))];
    let mut symbols = Symbols::new(&variables.into());
    let program = compile(path, &text, &mut symbols, Options::default()).expect("the script is right");
    let (mut vm, mut rng) = (Vm::new(&Arc::new(symbols)), Prng::from_seed(1));
    let start = Instant::now();
    for _ in 0..n {
        while vm.step(&program, &mut rng).expect("the script runs") != Step::Done {}
    }
    println!("{:.1}", start.elapsed().as_nanos() as f64 / n as f64);
}
