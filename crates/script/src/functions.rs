//! Operators and functions: one table, one evaluator.

use crate::error::EvalError;
use crate::value::{Scalar, fixed};
use pgdyno_base::{Prng, distribution, hash};

/// More arguments than this no call may have: pgbench's limit.
const MAX_ARGUMENTS: usize = 16;

/// Number of arguments that a function takes.
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

    /// Checks that `n` arguments are valid for the function called `name`. If not, returns pgdyno's message and
    /// pgbench's as the error.
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

    /// Returns true if the last argument, the seed, is missing and must be filled in.
    pub fn defaults_to_seed(self, n: usize) -> bool {
        match self {
            Function::Hash | Function::HashFnv1a => n == 1,
            Function::Permute => n == 2,
            _ => false,
        }
    }

    /// Returns true if equal arguments give equal values and the call has no side effects. Such calls are evaluated
    /// once, at compile time, if their arguments are constant.
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

type Evaluated = Result<Scalar, Box<EvalError>>;

#[cold]
fn out_of_range(what: &'static str) -> Box<EvalError> {
    Box::new(EvalError::OutOfRange(what))
}

#[cold]
fn argument(message: impl Into<String>) -> Box<EvalError> {
    Box::new(EvalError::Argument(message.into()))
}

#[inline]
fn divide(x: i64, y: i64) -> Evaluated {
    if y == 0 {
        return Err(Box::new(EvalError::DivisionByZero));
    }
    x.checked_div(y).map(Scalar::Int).ok_or_else(|| out_of_range("div"))
}

#[inline]
fn modulo(x: i64, y: i64) -> Evaluated {
    if y == 0 { Err(Box::new(EvalError::DivisionByZero)) } else { Ok(Scalar::Int(x.wrapping_rem(y))) }
}

/// Operators on two integers: what scripts mostly do. `None`: not an operator.
#[inline]
pub fn on_integers(f: Function, x: i64, y: i64) -> Option<Evaluated> {
    Some(match f {
        Function::Add => x.checked_add(y).map(Scalar::Int).ok_or_else(|| out_of_range("add")),
        Function::Subtract => x.checked_sub(y).map(Scalar::Int).ok_or_else(|| out_of_range("sub")),
        Function::Multiply => x.checked_mul(y).map(Scalar::Int).ok_or_else(|| out_of_range("mul")),
        Function::Divide => divide(x, y),
        Function::Mod => modulo(x, y),
        Function::Equal => Ok(Scalar::Bool(x == y)),
        Function::NotEqual => Ok(Scalar::Bool(x != y)),
        Function::Less => Ok(Scalar::Bool(x < y)),
        Function::LessEqual => Ok(Scalar::Bool(x <= y)),
        Function::BitAnd => Ok(Scalar::Int(x & y)),
        Function::BitOr => Ok(Scalar::Int(x | y)),
        Function::BitXor => Ok(Scalar::Int(x ^ y)),
        Function::ShiftLeft => Ok(Scalar::Int(x.wrapping_shl(y as u32))),
        Function::ShiftRight => Ok(Scalar::Int(x.wrapping_shr(y as u32))),
        _ => return None,
    })
}

/// The overloaded operators: on doubles when one side is a double, on integers otherwise.
fn overloaded(f: Function, a: Scalar, b: Scalar) -> Evaluated {
    if matches!(a, Scalar::Double(_)) || matches!(b, Scalar::Double(_)) {
        let (x, y) = (a.to_double()?, b.to_double()?);
        return Ok(match f {
            Function::Add => Scalar::Double(x + y),
            Function::Subtract => Scalar::Double(x - y),
            Function::Multiply => Scalar::Double(x * y),
            Function::Divide => Scalar::Double(x / y),
            Function::Equal => Scalar::Bool(x == y),
            Function::NotEqual => Scalar::Bool(x != y),
            Function::Less => Scalar::Bool(x < y),
            _ => Scalar::Bool(x <= y),
        });
    }
    let (x, y) = (a.to_int()?, b.to_int()?);
    on_integers(f, x, y).unwrap_or_else(|| unreachable!("{f:?} is no operator"))
}

/// Greatest or least, on doubles when any argument is one.
fn extreme(args: &[Scalar], pick_double: fn(f64, f64) -> f64, pick_int: fn(i64, i64) -> i64) -> Evaluated {
    if args.iter().any(|a| matches!(a, Scalar::Double(_))) {
        let mut best = args[0].to_double()?;
        for a in &args[1..] {
            best = pick_double(best, a.to_double()?);
        }
        return Ok(Scalar::Double(best));
    }
    let mut best = args[0].to_int()?;
    for a in &args[1..] {
        best = pick_int(best, a.to_int()?);
    }
    Ok(Scalar::Int(best))
}

fn random(f: Function, args: &[Scalar], rng: &mut Prng) -> Evaluated {
    let (min, max) = (args[0].to_int()?, args[1].to_int()?);
    if min > max {
        return Err(argument("empty range given to random"));
    }
    if max.checked_sub(min).and_then(|d| d.checked_add(1)).is_none() {
        return Err(argument("random range is too large"));
    }
    if f == Function::Random {
        return Ok(Scalar::Int(rng.range_i64(min, max)));
    }
    let p = args[2].to_double()?;
    match f {
        Function::RandomGaussian if p < 2.0 => {
            Err(argument(format!("gaussian parameter must be at least {:.6} (not {})", 2.0, fixed(p))))
        }
        Function::RandomGaussian => Ok(Scalar::Int(distribution::gaussian(rng, min, max, p))),
        Function::RandomZipfian if !(1.001..=1000.0).contains(&p) => {
            Err(argument(format!("zipfian parameter must be in range [1.001, 1000] (not {})", fixed(p))))
        }
        Function::RandomZipfian => Ok(Scalar::Int(distribution::zipfian(rng, min, max, p))),
        _ if p <= 0.0 => Err(argument(format!("exponential parameter must be greater than zero (not {})", fixed(p)))),
        _ => Ok(Scalar::Int(distribution::exponential(rng, min, max, p))),
    }
}

/// Evaluates `f` over `args`, whose number the parser has checked. NULL in, NULL out, but for IS and debug.
pub fn evaluate(f: Function, args: &[Scalar], rng: &mut Prng) -> Evaluated {
    if args.len() > MAX_ARGUMENTS {
        return Err(argument(format!("too many function arguments, maximum is {MAX_ARGUMENTS}")));
    }
    if f == Function::Is {
        return Ok(Scalar::Bool(args[0] == args[1]));
    }
    if f == Function::Debug {
        return Ok(args[0]);
    }
    if args.iter().any(|a| matches!(a, Scalar::Null)) {
        return Ok(Scalar::Null);
    }
    use Function as F;
    Ok(match f {
        F::Add | F::Subtract | F::Multiply | F::Divide | F::Equal | F::NotEqual | F::Less | F::LessEqual => {
            overloaded(f, args[0], args[1])?
        }
        F::Mod | F::BitAnd | F::BitOr | F::BitXor | F::ShiftLeft | F::ShiftRight => {
            let (x, y) = (args[0].to_int()?, args[1].to_int()?);
            on_integers(f, x, y).unwrap_or_else(|| unreachable!("{f:?} is no operator"))?
        }
        F::Not => Scalar::Bool(!args[0].to_bool()?),
        F::Abs => match args[0] {
            Scalar::Double(d) => Scalar::Double(d.abs()),
            other => Scalar::Int(other.to_int()?.wrapping_abs()),
        },
        F::Double => Scalar::Double(args[0].to_double()?),
        F::Exp => Scalar::Double(args[0].to_double()?.exp()),
        F::Ln => Scalar::Double(args[0].to_double()?.ln()),
        F::Sqrt => Scalar::Double(args[0].to_double()?.sqrt()),
        F::Pi => Scalar::Double(std::f64::consts::PI),
        F::Power => Scalar::Double(args[0].to_double()?.powf(args[1].to_double()?)),
        F::Int => Scalar::Int(args[0].to_int()?),
        F::Greatest => extreme(args, f64::max, i64::max)?,
        F::Least => extreme(args, f64::min, i64::min)?,
        F::Hash => Scalar::Int(hash::murmur2(args[0].to_int()?, args[1].to_int()? as u64)),
        F::HashFnv1a => Scalar::Int(hash::fnv1a(args[0].to_int()?, args[1].to_int()? as u64)),
        F::Permute => {
            let (value, size, seed) = (args[0].to_int()?, args[1].to_int()?, args[2].to_int()?);
            if size <= 0 {
                return Err(argument("permute size parameter must be greater than zero"));
            }
            Scalar::Int(hash::permute(value, size, seed))
        }
        F::Random | F::RandomExponential | F::RandomGaussian | F::RandomZipfian => random(f, args, rng)?,
        F::Is | F::Debug => unreachable!("handled above"),
    })
}
