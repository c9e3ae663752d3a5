//! What a script says, before it is compiled. Offsets are bytes into the script's text.

use crate::program::Capture;
use crate::value::Scalar;

/// One command of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// Offset of its beginning.
    pub offset: usize,
    /// Its text as written, without a trailing newline.
    pub text: String,
    /// Its first line as pgbench shows it.
    pub shown: String,
    /// `SQL`, or the meta-command's name as written.
    pub name: String,
    /// Action of the command.
    pub kind: CommandKind,
}

/// Action of a command.
#[derive(Clone, Debug, PartialEq)]
pub enum CommandKind {
    /// An SQL statement; the command's text is without its semicolon.
    Sql {
        /// Use of the statement's result.
        capture: Capture,
        /// A semicolon ends it.
        ended: bool,
    },
    /// `\set name expression`, and the historic `\setrandom`.
    Set {
        /// The variable.
        name: String,
        /// Its new value.
        value: Expr,
    },
    /// `\sleep amount [us|ms|s]`
    Sleep {
        /// Duration in units of `unit`.
        amount: Amount,
        /// Nanoseconds in one unit.
        unit: u64,
    },
    /// `\shell words` and `\setshell name words`
    Shell {
        /// The variable that takes the number it prints.
        assign: Option<String>,
        /// The words of the command.
        words: Vec<String>,
    },
    /// `\pick sample [prefix]`
    Pick {
        /// The sample.
        sample: String,
        /// Prefix of the variables' names.
        prefix: String,
    },
    /// `\startpipeline`
    StartPipeline,
    /// `\syncpipeline`
    SyncPipeline,
    /// `\endpipeline`
    EndPipeline,
    /// `\if condition`
    If(Expr),
    /// `\elif condition`
    Elif(Expr),
    /// `\else`
    Else,
    /// `\endif`
    Endif,
}

/// The number of a `\sleep`.
#[derive(Clone, Debug, PartialEq)]
pub enum Amount {
    /// Written out.
    Number(i64),
    /// A variable's.
    Variable(String),
}

/// An expression and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Offset of its beginning.
    pub offset: usize,
    /// Kind of the expression.
    pub kind: ExprKind,
}

/// Kind of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A literal.
    Const(Scalar),
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
