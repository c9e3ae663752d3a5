//! pgbench's script language: scan, lex, parse, compile, run; no I/O, no clock.
//!
//! pgbench's script language.
//!
//! Text becomes [`ast::Command`]s ([`scan`] cuts the file, [`meta`] reads what begins with a backslash, [`lexer`] and [`parser`] read the expressions), those become
//! a [`program::Program`] ([`compile`], over [`symbols::Symbols`]), and a [`vm::Vm`] runs it for one client, yielding what the client shall do
//! next: send a statement, sleep, or begin the next transaction. No I/O and no clock anywhere in this crate.

pub mod ast;
pub mod compile;
pub mod error;
pub mod flavour;
pub mod functions;
pub mod lexer;
pub mod meta;
pub mod parser;
pub mod program;
pub mod sample;
pub mod scan;
pub mod symbols;
pub mod value;
pub mod vm;

pub use compile::{Options, compile};
pub use error::{EvalError, ScriptError};
pub use flavour::Flavour;
pub use program::{Capture, Program, Statement};
pub use sample::Sample;
pub use symbols::Symbols;
pub use value::{Scalar, Value};
pub use vm::{Failure, Step, Vm};
