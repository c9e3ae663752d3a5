//! What a script says, before it is compiled. Offsets are bytes into the script's text.

use crate::value::Value;

/// One command of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// Where it begins.
    pub offset: usize,
    /// Its text as written, without a trailing newline; for reports.
    pub text: String,
    /// What it does.
    pub kind: CommandKind,
}

/// What a command does.
#[derive(Clone, Debug, PartialEq)]
pub enum CommandKind {
    /// An SQL statement, without its semicolon.
    Sql,
    /// `\set name expression`, and the historic `\setrandom`.
    Set {
        /// The variable.
        name: String,
        /// Its new value.
        value: Expr,
    },
    /// `\sleep amount [us|ms|s]`; the factor is microseconds per unit.
    Sleep {
        /// How long, in the unit.
        amount: Expr,
        /// Microseconds in one unit.
        factor: i64,
    },
    /// `\if condition`
    If(Expr),
    /// `\elif condition`
    Elif(Expr),
    /// `\else`
    Else,
    /// `\endif`
    Endif,
}

/// An expression and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Where it begins.
    pub offset: usize,
    /// What it is.
    pub kind: ExprKind,
}

/// What an expression is.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A literal.
    Const(Value),
    /// `:name`
    Var(String),
    /// An operator or a function with its arguments.
    Call(crate::functions::Function, Vec<Expr>),
    /// `left AND right`: the right side is not evaluated when the left decides.
    And(Box<Expr>, Box<Expr>),
    /// `left OR right`: likewise.
    Or(Box<Expr>, Box<Expr>),
    /// `CASE WHEN condition THEN value ... ELSE value END`
    Case {
        /// Conditions and their values, in order.
        branches: Vec<(Expr, Expr)>,
        /// The value when none holds.
        otherwise: Box<Expr>,
    },
}
