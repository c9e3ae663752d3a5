//! Operators and functions: one table, one evaluator.

use crate::error::EvalError;
use crate::value::Value;
use pgdyno_base::{Prng, distribution, hash};

/// More arguments than this no call may have: pgbench's limit.
const MAX_ARGUMENTS: usize = 16;

/// How many arguments a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arity {
    Exactly(usize),
    AtLeast(usize),
    Between(usize, usize),
}

/// An operator or function. Named functions stand in [`TABLE`]; the others are written as operators.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Mod,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Not,
    Is,
    Abs,
    Debug,
    Double,
    Exp,
    Greatest,
    Hash,
    HashFnv1a,
    Int,
    Least,
    Ln,
    Permute,
    Pi,
    Power,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    Sqrt,
}

use Arity::{AtLeast, Between, Exactly};

const TABLE: [(&str, Function, Arity); 21] = [
    ("abs", Function::Abs, Exactly(1)),
    ("debug", Function::Debug, Exactly(1)),
    ("double", Function::Double, Exactly(1)),
    ("exp", Function::Exp, Exactly(1)),
    ("greatest", Function::Greatest, AtLeast(1)),
    ("hash", Function::Hash, Between(1, 2)),
    ("hash_fnv1a", Function::HashFnv1a, Between(1, 2)),
    ("hash_murmur2", Function::Hash, Between(1, 2)),
    ("int", Function::Int, Exactly(1)),
    ("least", Function::Least, AtLeast(1)),
    ("ln", Function::Ln, Exactly(1)),
    ("mod", Function::Mod, Exactly(2)),
    ("permute", Function::Permute, Between(2, 3)),
    ("pi", Function::Pi, Exactly(0)),
    ("pow", Function::Power, Exactly(2)),
    ("power", Function::Power, Exactly(2)),
    ("random", Function::Random, Exactly(2)),
    ("random_exponential", Function::RandomExponential, Exactly(3)),
    ("random_gaussian", Function::RandomGaussian, Exactly(3)),
    ("random_zipfian", Function::RandomZipfian, Exactly(3)),
    ("sqrt", Function::Sqrt, Exactly(1)),
];

impl Function {
    /// The function of this (lower-case) name.
    pub fn by_name(name: &str) -> Option<Function> {
        TABLE.iter().find(|(n, ..)| *n == name).map(|(_, f, _)| *f)
    }

    /// All names, sorted.
    pub fn names() -> Vec<&'static str> {
        TABLE.iter().map(|(n, ..)| *n).collect()
    }

    /// Whether `n` arguments will do for the function called `name`; if not, our words and pgbench's.
    pub fn check_arguments(self, n: usize, name: &str) -> Result<(), (String, &'static str)> {
        let Some((_, _, arity)) = TABLE.iter().find(|(_, f, _)| *f == self) else {
            return Ok(());
        };
        let (fits, want, classic) = match *arity {
            Exactly(k) => (n == k, format!("exactly {k}"), "unexpected number of arguments"),
            AtLeast(k) => (n >= k, format!("at least {k}"), "at least one argument expected"),
            Between(a, b) => (n >= a && n <= b, format!("{a} to {b}"), "unexpected number of arguments"),
        };
        if fits { Ok(()) } else { Err((format!("function \"{name}\" takes {want} argument(s), not {n}"), classic)) }
    }

    /// Whether a last argument, the seed, is to be filled in.
    pub fn defaults_to_seed(self, n: usize) -> bool {
        match self {
            Function::Hash | Function::HashFnv1a => n == 1,
            Function::Permute => n == 2,
            _ => false,
        }
    }

    /// Whether equal arguments give equal values and nothing else happens: such calls are evaluated once, at compile time.
    pub fn is_pure(self) -> bool {
        !matches!(
            self,
            Function::Random
                | Function::RandomExponential
                | Function::RandomGaussian
                | Function::RandomZipfian
                | Function::Debug
        )
    }
}

fn integer(a: &Value, b: &Value, what: &'static str, op: fn(i64, i64) -> Option<i64>) -> Result<Value, EvalError> {
    op(a.to_int()?, b.to_int()?).map(Value::Int).ok_or(EvalError::OutOfRange(what))
}

/// The overloaded operators: on doubles when one side is a double, on integers otherwise.
fn arithmetic(f: Function, a: &Value, b: &Value) -> Result<Value, EvalError> {
    if matches!(a, Value::Double(_)) || matches!(b, Value::Double(_)) {
        let (x, y) = (a.to_double()?, b.to_double()?);
        return Ok(match f {
            Function::Add => Value::Double(x + y),
            Function::Subtract => Value::Double(x - y),
            Function::Multiply => Value::Double(x * y),
            Function::Divide => Value::Double(x / y),
            Function::Equal => Value::Bool(x == y),
            Function::NotEqual => Value::Bool(x != y),
            Function::Less => Value::Bool(x < y),
            _ => Value::Bool(x <= y),
        });
    }
    match f {
        Function::Add => integer(a, b, "add", i64::checked_add),
        Function::Subtract => integer(a, b, "sub", i64::checked_sub),
        Function::Multiply => integer(a, b, "mul", i64::checked_mul),
        Function::Divide => {
            let (x, y) = (a.to_int()?, b.to_int()?);
            if y == 0 {
                return Err(EvalError::DivisionByZero);
            }
            x.checked_div(y).map(Value::Int).ok_or(EvalError::OutOfRange("div"))
        }
        Function::Equal => Ok(Value::Bool(a.to_int()? == b.to_int()?)),
        Function::NotEqual => Ok(Value::Bool(a.to_int()? != b.to_int()?)),
        Function::Less => Ok(Value::Bool(a.to_int()? < b.to_int()?)),
        _ => Ok(Value::Bool(a.to_int()? <= b.to_int()?)),
    }
}

/// Greatest or least, on doubles when any argument is one.
fn extreme(
    args: &[Value],
    pick_double: fn(f64, f64) -> f64,
    pick_int: fn(i64, i64) -> i64,
) -> Result<Value, EvalError> {
    if args.iter().any(|a| matches!(a, Value::Double(_))) {
        let mut best = args[0].to_double()?;
        for a in &args[1..] {
            best = pick_double(best, a.to_double()?);
        }
        return Ok(Value::Double(best));
    }
    let mut best = args[0].to_int()?;
    for a in &args[1..] {
        best = pick_int(best, a.to_int()?);
    }
    Ok(Value::Int(best))
}

fn random(f: Function, args: &[Value], rng: &mut Prng) -> Result<Value, EvalError> {
    let (min, max) = (args[0].to_int()?, args[1].to_int()?);
    if min > max {
        return Err(EvalError::Argument("empty range given to random".into()));
    }
    if max.checked_sub(min).and_then(|d| d.checked_add(1)).is_none() {
        return Err(EvalError::Argument("random range is too large".into()));
    }
    if f == Function::Random {
        return Ok(Value::Int(rng.range_i64(min, max)));
    }
    let p = args[2].to_double()?;
    match f {
        Function::RandomGaussian if p < 2.0 => {
            Err(EvalError::Argument(format!("gaussian parameter must be at least {:.6} (not {p:.6})", 2.0)))
        }
        Function::RandomGaussian => Ok(Value::Int(distribution::gaussian(rng, min, max, p))),
        Function::RandomZipfian if !(1.001..=1000.0).contains(&p) => {
            Err(EvalError::Argument(format!("zipfian parameter must be in range [1.001, 1000] (not {p:.6})")))
        }
        Function::RandomZipfian => Ok(Value::Int(distribution::zipfian(rng, min, max, p))),
        _ if p <= 0.0 => {
            Err(EvalError::Argument(format!("exponential parameter must be greater than zero (not {p:.6})")))
        }
        _ => Ok(Value::Int(distribution::exponential(rng, min, max, p))),
    }
}

/// Evaluates `f` over `args`, whose number the parser has checked. NULL in, NULL out, but for IS and debug.
#[inline]
pub fn evaluate(f: Function, args: &[Value], rng: &mut Prng) -> Result<Value, EvalError> {
    if args.len() > MAX_ARGUMENTS {
        return Err(EvalError::Argument(format!("too many function arguments, maximum is {MAX_ARGUMENTS}")));
    }
    if f == Function::Is {
        return Ok(Value::Bool(args[0] == args[1]));
    }
    if f == Function::Debug {
        return Ok(args[0].clone());
    }
    if args.iter().any(|a| matches!(a, Value::Null)) {
        return Ok(Value::Null);
    }
    use Function as F;
    Ok(match f {
        F::Add | F::Subtract | F::Multiply | F::Divide | F::Equal | F::NotEqual | F::Less | F::LessEqual => {
            arithmetic(f, &args[0], &args[1])?
        }
        F::Mod => {
            let (x, y) = (args[0].to_int()?, args[1].to_int()?);
            if y == 0 {
                return Err(EvalError::DivisionByZero);
            }
            Value::Int(x.wrapping_rem(y))
        }
        F::BitAnd => Value::Int(args[0].to_int()? & args[1].to_int()?),
        F::BitOr => Value::Int(args[0].to_int()? | args[1].to_int()?),
        F::BitXor => Value::Int(args[0].to_int()? ^ args[1].to_int()?),
        F::ShiftLeft => Value::Int(args[0].to_int()?.wrapping_shl(args[1].to_int()? as u32)),
        F::ShiftRight => Value::Int(args[0].to_int()?.wrapping_shr(args[1].to_int()? as u32)),
        F::Not => Value::Bool(!args[0].to_bool()?),
        F::Abs => match &args[0] {
            Value::Double(d) => Value::Double(d.abs()),
            other => Value::Int(other.to_int()?.wrapping_abs()),
        },
        F::Double => Value::Double(args[0].to_double()?),
        F::Exp => Value::Double(args[0].to_double()?.exp()),
        F::Ln => Value::Double(args[0].to_double()?.ln()),
        F::Sqrt => Value::Double(args[0].to_double()?.sqrt()),
        F::Pi => Value::Double(std::f64::consts::PI),
        F::Power => Value::Double(args[0].to_double()?.powf(args[1].to_double()?)),
        F::Int => Value::Int(args[0].to_int()?),
        F::Greatest => extreme(args, f64::max, i64::max)?,
        F::Least => extreme(args, f64::min, i64::min)?,
        F::Hash => Value::Int(hash::murmur2(args[0].to_int()?, args[1].to_int()? as u64)),
        F::HashFnv1a => Value::Int(hash::fnv1a(args[0].to_int()?, args[1].to_int()? as u64)),
        F::Permute => {
            let (value, size, seed) = (args[0].to_int()?, args[1].to_int()?, args[2].to_int()?);
            if size <= 0 {
                return Err(EvalError::Argument("permute size parameter must be greater than zero".into()));
            }
            Value::Int(hash::permute(value, size, seed))
        }
        F::Random | F::RandomExponential | F::RandomGaussian | F::RandomZipfian => random(f, args, rng)?,
        F::Is | F::Debug => unreachable!("handled above"),
    })
}
