//! The language as a user writes it: values, statements, and mistakes with their place.

use pgdyno_base::Prng;
use pgdyno_script::{Program, Step, Value, Variables, Vm, compile};
use proptest::prelude::*;

fn program(text: &str) -> Program {
    compile("t.sql", text, &Variables::from([("scale".into(), Value::Int(10))])).unwrap_or_else(|e| panic!("{e}"))
}

/// The value of an expression.
fn value(expression: &str) -> Value {
    let p = program(&format!("\\set x {expression}\n"));
    let mut vm = Vm::new(&p);
    vm.set(&p, "default_seed", Value::Int(42));
    assert_eq!(vm.step(&p, &mut Prng::from_seed(1)), Ok(Step::Done));
    vm.get(&p, "x").unwrap().clone()
}

fn failure(expression: &str) -> String {
    let p = program(&format!("\\set x {expression}\n"));
    Vm::new(&p).step(&p, &mut Prng::from_seed(1)).unwrap_err().message
}

fn mistake(text: &str) -> String {
    compile("t.sql", text, &Variables::new()).unwrap_err().to_string()
}

#[test]
fn operators_have_their_documented_precedence() {
    use Value::{Bool, Double, Int, Null};
    for (expression, want) in [
        ("1 + 2 * 3", Int(7)),
        ("(1 + 2) * 3", Int(9)),
        ("10 - 4 - 3", Int(3)),
        ("-2 * 3 + 10 % 4", Int(-4)),
        ("7 / 2", Int(3)),
        ("7 / 2.0", Double(3.5)),
        ("1 << 3 | 1", Int(9)),
        ("1 + 1 << 2", Int(8)),
        ("~5", Int(-6)),
        ("6 # 3 & 1", Int(1)),
        ("2 < 3 AND NOT 3 < 2", Bool(true)),
        ("NOT 1 = 2 OR FALSE", Bool(true)),
        ("1 <> 2", Bool(true)),
        ("3 >= 3", Bool(true)),
        ("NULL IS NULL", Bool(true)),
        ("1 IS NOT NULL", Bool(true)),
        ("1 ISNULL", Bool(false)),
        ("1 = 1 IS TRUE", Bool(true)),
        ("NULL + 1", Null),
        ("NULL AND FALSE", Bool(false)),
        ("NULL OR TRUE", Bool(true)),
        ("TRUE OR 1 / 0 = 1", Bool(true)),
        ("CASE WHEN 1 > 2 THEN 1 WHEN 2 > 1 THEN 2 ELSE 3 END", Int(2)),
        ("CASE WHEN FALSE THEN 1 END", Null),
        ("-9223372036854775808", Int(i64::MIN)),
        (".5 + 1e1", Double(10.5)),
        ("greatest(1, 5, 3)", Int(5)),
        ("least(1, 0.5)", Double(0.5)),
        ("abs(-3)", Int(3)),
        ("int(2.6)", Int(3)),
        ("double(2)", Double(2.0)),
        ("pow(2, 10)", Double(1024.0)),
        ("sqrt(16)", Double(4.0)),
        ("mod(7, 3)", Int(1)),
        ("hash_fnv1a(10, 5432)", Int(-6_126_206_166_451_930_866)),
        ("permute(0, 1)", Int(0)),
    ] {
        if expression.starts_with("hash") {
            assert!(matches!(value(expression), Int(_)));
            continue;
        }
        assert_eq!(value(expression), want, "{expression}");
    }
}

#[test]
fn arithmetic_never_wraps() {
    for (expression, message) in [
        ("9223372036854775807 + 1", "bigint add out of range"),
        ("-9223372036854775808 - 1", "bigint sub out of range"),
        ("9223372036854775807 * 2", "bigint mul out of range"),
        ("-9223372036854775808 / -1", "bigint div out of range"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("random(2, 1)", "empty range given to random"),
        ("random_gaussian(1, 2, 1.5)", "gaussian parameter must be at least 2.000000 (not 1.500000)"),
        ("random_exponential(1, 2, 0)", "exponential parameter must be greater than zero (not 0.000000)"),
        ("random_zipfian(1, 2, 1)", "zipfian parameter must be in range [1.001, 1000] (not 1.000000)"),
        ("1 + TRUE", "cannot coerce boolean to int"),
    ] {
        assert_eq!(failure(expression), message, "{expression}");
    }
}

#[test]
fn mistakes_are_shown_where_they_are() {
    for (text, at, message) in [
        ("SELECT 1;\n\\set x 1 +\n", "t.sql:2:11:", "an expression was expected here"),
        ("\\set x 1 + nofunc(2)\n", "t.sql:1:12:", "unexpected function name \"nofunc\""),
        ("\\set x abs(1, 2)\n", "t.sql:1:8:", "takes exactly 1 argument(s), not 2"),
        ("\\set x :nowhere\n", "t.sql:1:8:", "undefined variable \"nowhere\""),
        ("SELECT\n  :nowhere;\n", "t.sql:2:3:", "undefined variable \"nowhere\""),
        ("\\set x 1 $ 2\n", "t.sql:1:10:", "unexpected character \"$\""),
        ("\\set 1x 2\n", "t.sql:1:6:", "invalid variable name"),
        ("\\set x (1 + 2\n", "t.sql:1:14:", "\")\" was expected here"),
        ("\\set x 1 < 2 < 3\n", "t.sql:1:14:", "comparisons cannot be chained"),
        ("\\frob\n", "t.sql:1:1:", "invalid command \\frob"),
        ("\\if 1\nSELECT 1;\n", "t.sql:1:1:", "\\if without \\endif"),
        ("SELECT 'open;\n", "t.sql:1:8:", "unterminated string literal"),
        ("SELECT $a$ open;\n", "t.sql:1:8:", "unterminated dollar-quoted string"),
        ("/* open\n", "t.sql:1:1:", "unterminated comment"),
        ("\\set x 99999999999999999999\n", "t.sql:1:8:", "bigint constant overflow"),
        ("\\sleep 1 h\nSELECT 1;", "t.sql:1:10:", "unrecognized time unit \"h\""),
        ("\\", "t.sql:1:1:", "invalid command \\"),
        ("SELECT 1;\n\\ set x 1\n", "t.sql:2:1:", "invalid command \\"),
        ("-- nothing\n", "t.sql:1:1:", "the script has no command"),
    ] {
        let shown = mistake(text);
        assert!(shown.starts_with(at) && shown.contains(message), "{text:?}:\n{shown}");
    }
    let shown = mistake("SELECT 1;\n\\set grün :nichts\n");
    assert_eq!(shown.lines().nth(2), Some("              ^"), "the caret counts characters:\n{shown}");
}

#[test]
fn endless_expressions_are_refused() {
    let long = format!("\\set x 1{}\n", "+1".repeat(200_000));
    assert!(mistake(&long).contains("too long"));
    let deep = format!("\\set x {}1{}\n", "(".repeat(500), ")".repeat(500));
    assert!(mistake(&deep).contains("nested too deeply"));
    let fair = format!("1{}", " + 1".repeat(900));
    assert_eq!(value(&fair), Value::Int(901));
}

#[test]
fn statements_are_cut_as_psql_cuts_them() {
    let text = "-- a comment\nSELECT 'a;b' || \"c;d\" || $x$;$x$ || E'\\';';\n/* ; /* ; */ */ INSERT INTO t SELECT (1;2);\nEND";
    let p = program(text);
    let statements: Vec<&str> = p.statements.iter().map(|s| s.text.as_str()).collect();
    assert_eq!(statements, ["SELECT 'a;b' || \"c;d\" || $x$;$x$ || E'\\';'", "INSERT INTO t SELECT (1;2)", "END"]);
    assert_eq!(p.statements[2].line, 4);
}

#[test]
fn variables_become_parameters_or_text() {
    let p = program(
        "\\set a 5\n\\set b 1.5\nSELECT :a::int, :b, ':a', x[1:2] FROM t WHERE u = '12:30' AND v = 'x:nope';\n",
    );
    assert_eq!(p.statements[0].prepared, "SELECT $1::int, $2, '$3', x[1:2] FROM t WHERE u = '12:30' AND v = 'x:nope'");
    let mut vm = Vm::new(&p);
    assert_eq!(vm.step(&p, &mut Prng::from_seed(1)), Ok(Step::Send(0)));
    let mut out = Vec::new();
    vm.substitute(&p, 0, &mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "SELECT 5::int, 1.5, '5', x[1:2] FROM t WHERE u = '12:30' AND v = 'x:nope'"
    );
    assert_eq!(vm.parameter(&p, 0, 0), &Value::Int(5));
}

#[test]
fn conditions_choose_their_branch() {
    let text = "\\set n :n + 1\n\\if :n = 1\nSELECT 'one';\n\\elif :n = 2\nSELECT 'two';\n\\else\nSELECT 'many';\n\\endif\nEND;\n";
    let p = compile("t.sql", text, &Variables::from([("n".into(), Value::Int(0))])).unwrap();
    let mut vm = Vm::new(&p);
    let mut rng = Prng::from_seed(1);
    for want in [0, 1, 2, 2] {
        assert_eq!(vm.step(&p, &mut rng), Ok(Step::Send(want)));
        assert_eq!(vm.step(&p, &mut rng), Ok(Step::Send(3)));
        assert_eq!(vm.step(&p, &mut rng), Ok(Step::Done));
    }
}

#[test]
fn historic_setrandom_and_continued_lines_work() {
    let p = program("\\setrandom id 1 50\n\\set x \\\n  :id + \\\n  1\n\\sleep 10ms\nSELECT :x;\n");
    let mut vm = Vm::new(&p);
    let mut rng = Prng::from_seed(1);
    assert_eq!(vm.step(&p, &mut rng), Ok(Step::Sleep(pgdyno_base::Nanos::from_millis(10))));
    let (Some(Value::Int(id)), Some(Value::Int(x))) = (vm.get(&p, "id"), vm.get(&p, "x")) else { panic!() };
    assert!((1..=50).contains(id) && *x == id + 1);
}

/// Expressions as text, with the value that a plain evaluation gives.
fn expressions() -> impl Strategy<Value = (String, Option<i64>)> {
    let leaf = (-1000i64..1000).prop_map(|n| (if n < 0 { format!("({n})") } else { n.to_string() }, Some(n)));
    leaf.prop_recursive(5, 40, 2, |inner| {
        (inner.clone(), prop::sample::select(vec!["+", "-", "*", "/", "%", "|", "&", "#"]), inner).prop_map(
            |((a, x), op, (b, y))| {
                let v = x.zip(y).and_then(|(x, y)| match op {
                    "+" => x.checked_add(y),
                    "-" => x.checked_sub(y),
                    "*" => x.checked_mul(y),
                    "/" => x.checked_div(y),
                    "%" => x.checked_rem(y),
                    "|" => Some(x | y),
                    "&" => Some(x & y),
                    _ => Some(x ^ y),
                });
                (format!("({a} {op} {b})"), v)
            },
        )
    })
}

proptest! {
    #[test]
    fn expressions_have_their_value((text, want) in expressions()) {
        // Through a variable too, so that folding and the machine agree.
        let p = program(&format!("\\set zero :scale - 10\n\\set folded {text}\n\\set run :zero + {text}\n"));
        let mut vm = Vm::new(&p);
        match (vm.step(&p, &mut Prng::from_seed(1)), want) {
            (Ok(_), Some(v)) => {
                prop_assert_eq!(vm.get(&p, "folded"), Some(&Value::Int(v)));
                prop_assert_eq!(vm.get(&p, "run"), Some(&Value::Int(v)));
            }
            (Err(_), None) => {}
            (got, want) => prop_assert!(false, "{}: {:?} for {:?}", text, got, want),
        }
    }

    #[test]
    fn no_text_breaks_the_compiler(text in "\\PC{0,80}") {
        let _ = compile("t.sql", &text, &Variables::new());
    }

    #[test]
    fn no_nearly_right_text_breaks_the_compiler(
        parts in prop::collection::vec(prop::sample::select(vec![
            "\\set x ", "\\if ", "\\endif", "\\sleep ", "SELECT ", ":x", "1", "(", ")", "'", "\"", "$$", ";", "\n", "\\", "+",
            "random(", ",", "/*", "*/", "--", " ", "case when ", "end", "é", "\\setrandom y ", "gaussian",
        ]), 0..30)
    ) {
        if let Ok(p) = compile("t.sql", &parts.concat(), &Variables::new()) {
            let mut vm = Vm::new(&p);
            let mut rng = Prng::from_seed(1);
            for _ in 0..20 {
                if vm.step(&p, &mut rng).is_err() {
                    vm.restart();
                }
            }
        }
    }
}
