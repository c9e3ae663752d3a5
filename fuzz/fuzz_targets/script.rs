//! Whatever a script says, it compiles or is refused with a place; what compiles runs or fails with a place.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgdyno_base::Prng;
use pgdyno_script::{Value, Variables, Vm, compile};

fuzz_target!(|text: &str| {
    let variables = Variables::from([("scale".to_owned(), Value::Int(1))]);
    match compile("fuzz.sql", text, &variables) {
        Err(e) => assert!(!e.to_string().is_empty()),
        Ok(program) => {
            let mut vm = Vm::new(&program);
            let mut rng = Prng::from_seed(1);
            for _ in 0..50 {
                if let Err(e) = vm.step(&program, &mut rng) {
                    assert!(e.line >= 1 && e.column >= 1);
                    vm.restart();
                }
            }
        }
    }
});
