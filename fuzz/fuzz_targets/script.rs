//! Whatever a script says, it compiles or is refused with a place; what compiles runs or fails with a place.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgdyno_base::Prng;
use pgdyno_script::{Options, Symbols, Value, Vm, compile};
use std::sync::Arc;

fuzz_target!(|text: &str| {
    for strict in [true, false] {
        let mut symbols = Symbols::new(&[("scale".to_owned(), Value::Int(1))].into());
        match compile("fuzz.sql", text, &mut symbols, Options { strict, marks: !strict, ..Options::default() }) {
            Err(e) => assert!(!e.to_string().is_empty() && !e.classic.is_empty()),
            Ok(program) => {
                let mut vm = Vm::new(&Arc::new(symbols));
                let mut rng = Prng::from_seed(1);
                for _ in 0..50 {
                    if let Err(failure) = vm.step(&program, &mut rng) {
                        let e = program.locate(failure.pc, &failure.error);
                        assert!(e.line >= 1 && e.column >= 1);
                        vm.restart();
                    }
                }
            }
        }
    }
});
