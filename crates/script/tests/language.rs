//! The language as a user writes it: values, statements, and mistakes with their place.

use pgdyno_base::Prng;
use pgdyno_script::{Capture, Options, Program, Sample, ScriptError, Step, Symbols, Value, Vm, compile};
use proptest::prelude::*;
use std::sync::Arc;

/// A program with the symbols it was compiled with.
struct Compiled {
    program: Program,
    symbols: Arc<Symbols>,
}

impl std::ops::Deref for Compiled {
    type Target = Program;
    fn deref(&self) -> &Program {
        &self.program
    }
}

fn compiled(text: &str, variables: &[(&str, Value)], options: Options) -> Result<Compiled, ScriptError> {
    let mut symbols = Symbols::new(&variables.iter().map(|(n, v)| ((*n).to_owned(), v.clone())).collect());
    let program = compile("t.sql", text, &mut symbols, options)?;
    Ok(Compiled { program, symbols: Arc::new(symbols) })
}

fn program(text: &str) -> Compiled {
    compiled(text, &[("scale", Value::Int(10))], Options::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// Compiles a script as pgbench does.
fn lenient(text: &str) -> Compiled {
    compiled(text, &[], Options { strict: false, marks: false, ..Options::default() }).unwrap_or_else(|e| panic!("{e}"))
}

/// The value of an expression.
fn value(expression: &str) -> Value {
    let p = program(&format!("\\set x {expression}\n"));
    let mut vm = Vm::new(&p.symbols);
    vm.set("default_seed", Value::Int(42));
    assert_eq!(vm.step(&p, &mut Prng::from_seed(1)), Ok(Step::Done));
    vm.get("x").unwrap().clone()
}

fn failure_of(p: &Compiled) -> String {
    Vm::new(&p.symbols).step(p, &mut Prng::from_seed(1)).unwrap_err().error.to_string()
}

fn failure(expression: &str) -> String {
    failure_of(&program(&format!("\\set x {expression}\n")))
}

fn error(text: &str) -> ScriptError {
    compiled(text, &[], Options::default()).map(|_| ()).unwrap_err()
}

fn mistake(text: &str) -> String {
    error(text).to_string()
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
        ("~5 + 1", Int(-7)),
        ("~5 | 1", Int(-5)),
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
        ("NULL AND FALSE", Null),
        ("NULL OR TRUE", Null),
        ("FALSE AND NULL", Bool(false)),
        ("TRUE OR NULL", Bool(true)),
        ("TRUE AND NULL", Null),
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
        // Not a number: pgbench draws something, and so do we; what matters is that it ends.
        ("random_gaussian(1, 10, sqrt(-1)) * 0", Int(0)),
        ("mod(7, 3)", Int(1)),
        // As pgbench's own tests have them.
        ("hash_fnv1a(10, 5432)", Int(-7_793_829_335_365_542_153)),
        ("hash_murmur2(10, 5432)", Int(-5_817_877_081_768_721_676)),
        ("hash(10, 5432)", Int(-5_817_877_081_768_721_676)),
        ("permute(0, 1)", Int(0)),
    ] {
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
        ("\\gset\n", "t.sql:1:1:", "\\gset must follow an SQL command"),
        ("SELECT 1 \\gset a b\n", "t.sql:1:18:", "too many arguments"),
        ("\\startpipeline x\n", "t.sql:1:16:", "unexpected argument"),
        ("SELECT 'open;\n", "t.sql:1:8:", "unterminated string literal"),
        ("SELECT $a$ open;\n", "t.sql:1:8:", "unterminated dollar-quoted string"),
        ("/* open\n", "t.sql:1:1:", "unterminated comment"),
        ("\\set x 99999999999999999999\n", "t.sql:1:8:", "bigint constant overflow"),
        ("\\sleep 1 h\nSELECT 1;", "t.sql:1:10:", "unrecognized time unit \"h\""),
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
    let text = "-- a comment\nSELECT 'a;b' || \"c;d\" || $x$;$x$ || E'\\';';\n/* ; /* ; */ */ INSERT INTO t SELECT (1;2);\n/* lone */\nEND";
    let p = program(text);
    let statements: Vec<&str> = p.statements.iter().map(|s| s.text.as_str()).collect();
    assert_eq!(
        statements,
        [
            "SELECT 'a;b' || \"c;d\" || $x$;$x$ || E'\\';'",
            "/* ; /* ; */ */ INSERT INTO t SELECT (1;2)",
            "/* lone */\nEND"
        ]
    );
    assert_eq!(p.statements[2].line, 4);
    assert_eq!(program("/* lone */\n\\set x 1\nSELECT 1;\n").statements.len(), 1);
    assert_eq!(lenient("/* lone */\n\\set x 1\nSELECT 1;\n").statements.len(), 2);
}

#[test]
fn a_doubled_quote_leaves_escapes_on() {
    let p = program("SELECT E'a''\\'; ' AS x;\nSELECT 'a''\\';\nSELECT 2;\n");
    let statements: Vec<&str> = p.statements.iter().map(|s| s.text.as_str()).collect();
    assert_eq!(statements, ["SELECT E'a''\\'; ' AS x", "SELECT 'a''\\'", "SELECT 2"]);
}

#[test]
fn variables_become_parameters_or_text() {
    let p = program(
        "\\set a 5\n\\set b 1.5\nSELECT :a::int, :b, ':a', x[1:2] FROM t WHERE u = '12:30' AND v = 'x:nope';\n",
    );
    assert_eq!(p.statements[0].prepared, "SELECT $1::int, $2, '$3', x[1:2] FROM t WHERE u = '12:30' AND v = 'x:nope';");
    let mut vm = Vm::new(&p.symbols);
    assert_eq!(vm.step(&p, &mut Prng::from_seed(1)), Ok(Step::Send(0)));
    let mut out = Vec::new();
    vm.substitute(&p, 0, &mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "SELECT 5::int, 1.5, '5', x[1:2] FROM t WHERE u = '12:30' AND v = 'x:nope';"
    );
    assert_eq!(vm.parameter(&p, 0, 0), &Value::Int(5));
}

#[test]
fn conditions_choose_their_branch() {
    let text = "\\set n :n + 1\n\\if :n = 1\nSELECT 'one';\n\\elif :n = 2\nSELECT 'two';\n\\else\nSELECT 'many';\n\\endif\nEND;\n";
    let p = compiled(text, &[("n", Value::Int(0))], Options::default()).unwrap();
    let mut vm = Vm::new(&p.symbols);
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
    let mut vm = Vm::new(&p.symbols);
    let mut rng = Prng::from_seed(1);
    assert_eq!(vm.step(&p, &mut rng), Ok(Step::Sleep(pgdyno_base::Nanos::from_millis(10))));
    let (Some(Value::Int(id)), Some(Value::Int(x))) = (vm.get("id"), vm.get("x")) else { panic!() };
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

/// Checks the same mistakes in the form that pgbench 18 shows, taken from its output.
#[test]
fn mistakes_have_the_classic_form_too() {
    for (text, want) in [
        ("\\set i 1 +\n", "t.sql:1: syntax error in command \"set\"\n\\set i 1 +\n          ^ error found here"),
        (
            "\\set i nofunc(1)\n",
            "t.sql:1: unexpected function name (nofunc) in command \"set\"\n\\set i nofunc(1)\n            ^ error found here",
        ),
        (
            "select 1;\n  \\set i ln(1.0,\\\n 2.0))\n",
            "t.sql:2: unexpected number of arguments (ln) in command \"set\"\n\\set i ln(1.0,\\\n 2.0))\n                    ^ error \
             found here",
        ),
        ("\\set i ;", "t.sql:1: unexpected character (;) in command \"set\"\n\\set i ;\n       ^ error found here"),
        ("\\set", "t.sql:1: missing argument in command \"set\""),
        ("\\set i", "t.sql:1: syntax error in command \"set\"\n\\set i\n     ^ error found here"),
        (
            "\\set i 1 < 2 < 3",
            "t.sql:1: syntax error in command \"set\"\n\\set i 1 < 2 < 3\n             ^ error found here",
        ),
        (
            "\\set x case when 1 then end",
            "t.sql:1: syntax error in command \"set\"\n\\set x case when 1 then end\n                          ^ error \
             found here",
        ),
        (
            "\\set i 100000000000000000000",
            "t.sql:1: bigint constant overflow (100000000000000000000) in command \"set\"\n\\set i 100000000000000000000\n\
             \x20                          ^ error found here",
        ),
        ("\\if 1\n\\else BAD\n\\endif", "t.sql:2: unexpected argument in command \"else\"\n\\else BAD"),
        ("\\shell", "t.sql:1: missing command in command \"shell\"\n\\shell"),
        ("\\nosuch a b\n", "t.sql:1: invalid command in command \"nosuch\"\n\\nosuch a b"),
        ("select 1 \\gset a b\n", "t.sql:1: too many arguments in command \"gset\"\n\\gset a b"),
        ("\\gset", "t.sql:1: \\gset must follow an SQL command"),
        ("\\set i +1\n\\gset", "t.sql:2: \\gset must follow an SQL command (\\set i +1)"),
        ("", "empty command list for script \"t.sql\""),
        ("\\elif 1", "condition error in script \"t.sql\" command 1: \\elif without matching \\if"),
        ("\\if 1", "condition error in script \"t.sql\" command 2: \\if without matching \\endif"),
        ("\\if 1\n\\else\n\\else\n\\endif", "condition error in script \"t.sql\" command 3: \\else after \\else"),
    ] {
        assert_eq!(&*error(text).classic, want, "{text:?}");
    }
}

#[test]
fn what_pgbench_finds_out_late_is_found_out_late_when_asked_for() {
    assert_eq!(failure_of(&lenient("\\set x :nowhere\n")), "undefined variable \"nowhere\"");
    assert_eq!(failure_of(&lenient("\\set . 1\n")), "set: invalid variable name: \".\"");
    assert_eq!(failure_of(&lenient("\\sleep :nowhere\n")), "sleep: undefined variable \"nowhere\"");
    assert_eq!(failure_of(&lenient("\\set foo 1\n\\sleep :bar ms\n")), "sleep: undefined variable \"bar\"");
    let p = lenient("SELECT :nowhere, ':neither';\n");
    let mut out = Vec::new();
    Vm::new(&p.symbols).substitute(&p, 0, &mut out);
    assert_eq!(out, b"SELECT :nowhere, ':neither';");
    let seventeen = (0..17).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    assert_eq!(failure(&format!("least({seventeen})")), "too many function arguments, maximum is 16");
}

#[test]
fn results_go_into_variables() {
    let p = lenient("\\; \\; SELECT 0 AS a \\; SELECT 5 AS a \\gset x_\n\\set y :x_a + 1\nSELECT 1 \\aset\n");
    assert_eq!(p.statements[0].text, "; ; SELECT 0 AS a ; SELECT 5 AS a");
    assert_eq!(p.statements[0].capture, Capture::Last("x_".into()));
    assert_eq!(p.statements[1].capture, Capture::Each(String::new()));
    let (mut vm, mut rng) = (Vm::new(&p.symbols), Prng::from_seed(1));
    assert_eq!(vm.step(&p, &mut rng), Ok(Step::Send(0)));
    assert!(vm.capture("x_a", b"7") && vm.capture("nobody_asks", b"7") && !vm.capture("?column?", b"7"));
    assert_eq!(vm.step(&p, &mut rng), Ok(Step::Send(1)));
    assert_eq!(vm.get("y"), Some(&Value::Int(8)));
    // In strict mode too: a prefix says that the server names variables.
    program("SELECT 5 AS a \\gset x_\n\\set y :x_a + 1\n");
    assert!(mistake("SELECT 5 AS a \\gset x_\n\\set y :z_a + 1\n").contains("undefined variable \"z_a\""));
}

#[test]
fn shell_commands_and_pipelines_are_handed_over() {
    let p = lenient(
        "\\set n 3\n\\setshell x echo ::a :n\\\n  b\n\\SHELL echo :nope\n\\startpipeline\nSELECT 1;\n\\syncpipeline\nSELECT 2;\n\\endpipeline\nSELECT 3;",
    );
    let (mut vm, mut rng) = (Vm::new(&p.symbols), Prng::from_seed(1));
    assert_eq!(vm.step(&p, &mut rng), Ok(Step::Shell(0)));
    assert_eq!(vm.shell_command(&p, 0), Ok("echo :a 3 b".into()));
    assert_eq!(vm.step(&p, &mut rng), Ok(Step::Shell(1)));
    assert_eq!(vm.shell_command(&p, 1).unwrap_err().to_string(), "echo: undefined variable \":nope\"");
    for want in [
        Step::StartPipeline { first: 0, end: 2 },
        Step::Send(0),
        Step::SyncPipeline,
        Step::Send(1),
        Step::EndPipeline,
        Step::Send(2),
        Step::Done,
    ] {
        assert_eq!(vm.step(&p, &mut rng), Ok(want));
    }
}

#[test]
fn the_body_of_an_sql_function_is_one_statement() {
    let p = program(
        "CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END;\nSELECT 1;\nBEGIN;END;",
    );
    assert_eq!(p.statements.len(), 4);
}

#[test]
fn commands_are_shown_as_pgbench_shows_them() {
    let p = lenient("\\set a \\\n 1\nSELECT\n 1;\nSELECT 2;\nSELECT 3 \\gset\n\\IF 1\n\\endif\n");
    let shown: Vec<&str> = p.commands.iter().map(|c| c.text.as_str()).collect();
    assert_eq!(shown, ["\\set a \\\n 1", "SELECT", "SELECT 2;", "SELECT 3 ", "\\IF 1", "\\endif"]);
    assert_eq!(p.commands[4].name, "IF");
}

#[test]
fn marks_say_which_commands_are_executed() {
    let options = Options { strict: false, marks: true, ..Options::default() };
    let text = "\\if :x\nSELECT 1;\n\\elif 1\nSELECT 2;\n\\else\nSELECT 3;\n\\endif\n";
    for (x, want) in [(1, vec![0, 1, 2]), (0, vec![0, 2, 3, 4])] {
        let p = compiled(text, &[("x", Value::Int(x))], options).unwrap();
        let (mut vm, mut rng, mut marks) = (Vm::new(&p.symbols), Prng::from_seed(1), Vec::new());
        loop {
            match vm.step(&p, &mut rng).unwrap() {
                Step::Mark(n) => marks.push(n),
                Step::Done => break,
                _ => {}
            }
        }
        assert_eq!(marks, want, "x = {x}");
    }
}

#[test]
fn a_colon_in_quotes_or_comments_is_no_variable() {
    for text in [
        "SELECT 1 AS \"a:b\";\n",
        "SELECT $j${\"a\":true}$j$;\n",
        "SELECT $$ :nowhere $$;\n",
        "/* x:y */ SELECT 1;\n",
        "SELECT 1 -- at 10:thirty\n;\n",
        "SELECT E'it\\'s :nowhere';\n",
        "SELECT 'a:b';\n",
    ] {
        let p = program(text);
        assert!(p.statements[0].parameters.is_empty(), "{text}");
        assert_eq!(p.statements[0].prepared.trim_end(), text.trim_end(), "{text}");
    }
    // What is known is put in everywhere, as pgbench does.
    assert_eq!(program("\\set x 1\nSELECT $$ :x $$, \"a:b\";\n").statements[0].prepared, "SELECT $$ $1 $$, \"a:b\";");
    // Behind them it is one again.
    assert!(mistake("SELECT \"a:b\", :c;\n").contains("undefined variable \"c\""));
}

#[test]
fn a_line_of_any_length_has_its_mistakes_shown() {
    let blanks = " ".repeat(66_000);
    for text in [
        format!("{blanks}\\set a (\n"),
        format!("\\set a {blanks}1 +\nSELECT 1;\n"),
        format!("SELECT 1,{blanks}:b,{blanks};\n"),
    ] {
        let shown = mistake(&text);
        assert!(shown.len() < 1000 && shown.contains('…') && shown.contains('^'), "{shown}");
        let (line, caret) = (shown.lines().nth(1).unwrap(), shown.lines().nth(2).unwrap());
        let under = line.chars().nth(caret.chars().count() - 1);
        assert!(matches!(under, None | Some('+' | ':' | '(' | '…' | ' ')), "{shown}");
        let _ = compiled(&text, &[], Options { strict: false, marks: true, ..Options::default() });
    }
}

proptest! {
    #[test]
    fn expressions_have_their_value((text, want) in expressions()) {
        // Through a variable too, so that folding and the machine agree.
        let p = program(&format!("\\set zero :scale - 10\n\\set folded {text}\n\\set run :zero + {text}\n"));
        let mut vm = Vm::new(&p.symbols);
        match (vm.step(&p, &mut Prng::from_seed(1)), want) {
            (Ok(_), Some(v)) => {
                prop_assert_eq!(vm.get("folded"), Some(&Value::Int(v)));
                prop_assert_eq!(vm.get("run"), Some(&Value::Int(v)));
            }
            (Err(_), None) => {}
            (got, want) => prop_assert!(false, "{}: {:?} for {:?}", text, got, want),
        }
    }

    #[test]
    fn no_text_breaks_the_compiler(text in "\\PC{0,80}") {
        let _ = compiled(&text, &[], Options::default());
        let _ = compiled(&text, &[], Options { strict: false, marks: true, ..Options::default() });
    }

    #[test]
    fn no_nearly_right_text_breaks_the_compiler(
        parts in prop::collection::vec(prop::sample::select(vec![
            "\\set x ", "\\if ", "\\endif", "\\sleep ", "SELECT ", ":x", "1", "(", ")", "'", "\"", "$$", ";", "\n", "\\", "+",
            "random(", ",", "/*", "*/", "--", " ", "case when ", "end", "é", "\\setrandom y ", "gaussian", "\\gset p_",
            "\\startpipeline\n", "\\endpipeline\n", "\\shell ", "\\setshell z ", "\\;", "create function f begin ", "end;",
        ]), 0..30),
        marks in any::<bool>()
    ) {
        if let Ok(p) = compiled(&parts.concat(), &[], Options { strict: false, marks, ..Options::default() }) {
            let mut vm = Vm::new(&p.symbols);
            let mut rng = Prng::from_seed(1);
            for _ in 0..20 {
                if vm.step(&p, &mut rng).is_err() {
                    vm.restart();
                }
            }
        }
    }
}

#[test]
fn a_row_of_a_sample_goes_into_variables_together() {
    let text = |s: &str| Some(s.to_owned());
    let rows = [vec![text("7"), text("it's")], vec![text("8"), None], vec![text("9"), text("a\\b")]];
    let mut symbols = Symbols::default();
    symbols.add_sample(Sample::new("people", vec!["id".into(), "name".into()], &rows).unwrap());
    let script = "\\pick people p_\n\\set next :p_id + 1\nselect :p_id, :p_name, :next;\n";
    let p = compile("t.sql", script, &mut symbols, Options::default()).unwrap();
    assert_eq!(p.statements[0].prepared, "select $1, $2, $3;");
    let mut vm = Vm::new(&Arc::new(symbols));
    let (mut rng, mut seen) = (Prng::from_seed(1), std::collections::BTreeMap::new());
    for _ in 0..3_000 {
        assert_eq!(vm.step(&p, &mut rng), Ok(Step::Send(0)));
        let mut sent = Vec::new();
        vm.substitute(&p, 0, &mut sent);
        *seen.entry(String::from_utf8(sent).unwrap()).or_insert(0) += 1;
        assert_eq!(vm.step(&p, &mut rng), Ok(Step::Done));
    }
    // What the simple protocol sends is a literal, and rows are drawn equally often.
    let want = ["select '7', 'it''s', 8;", "select '8', NULL, 9;", "select '9',  E'a\\\\b', 10;"];
    assert_eq!(seen.keys().map(String::as_str).collect::<Vec<_>>(), want);
    assert!(seen.values().all(|n| (850..1150).contains(n)), "{seen:?}");
}

#[test]
fn what_there_is_to_pick_is_known_before_anything_runs() {
    assert!(mistake("\\pick people\n").starts_with("t.sql:1:1: there is no sample \"people\""));
    assert!(mistake("\\pick\n").contains("missing sample name"));
    let mut symbols = Symbols::default();
    symbols.add_sample(Sample::new("s", vec!["1st".into()], &[]).unwrap());
    let odd = compile("t.sql", "\\pick s\n", &mut symbols, Options::default()).unwrap_err().to_string();
    assert!(odd.contains("invalid variable name: \"1st\"") && odd.contains("prefix"), "{odd}");
    let p = compile("t.sql", "\\pick s p\n", &mut symbols, Options::default()).unwrap();
    let empty = Vm::new(&Arc::new(symbols)).step(&p, &mut Prng::from_seed(1)).unwrap_err();
    assert_eq!(empty.error.to_string(), "pick: sample s has no rows");
    assert!(Sample::new("s", vec!["a".into()], &[vec![]]).is_err());
    // pgbench has no such command.
    let classic = compiled("\\pick s\n", &[], Options { strict: false, marks: false, ..Options::default() })
        .map(|_| ())
        .unwrap_err();
    assert!(classic.to_string().contains("invalid command \\pick"));
}

#[test]
fn mysql_quotes_and_placeholders() {
    use pgdyno_script::Flavour;
    let options = Options { flavour: Flavour::MySql, ..Options::default() };
    let text = "\\set a 1\nselect 'it\\'s; :a', `x;y`, \":a\" from t where a = :a and b = :a; # :a; not a statement\nselect 2;\n";
    let program = compiled(text, &[], options).unwrap_or_else(|e| panic!("{e}"));
    let prepared: Vec<&str> = program.statements.iter().map(|s| s.prepared.as_str()).collect();
    assert_eq!(prepared.len(), 2, "{prepared:?}");
    assert!(prepared[0].ends_with("where a = ? and b = ?;"), "{prepared:?}");
    assert!(prepared[1].starts_with("select 2"), "{prepared:?}");
    let program = compiled("begin;\nselect 1;\nEnd;\n", &[], options).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(program.statements[2].prepared, "COMMIT;");
    // PostgreSQL's dollar quotes are nothing there.
    let program = compiled("select '$a$';\nselect 1;\n", &[], options).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(program.statements.len(), 2);
}
