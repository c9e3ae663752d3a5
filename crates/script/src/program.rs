//! A compiled script.

use crate::error::{EvalError, ScriptError};
use crate::functions::Function;
use crate::value::Value;

/// The index of a variable in a client's table.
pub type Slot = u16;

/// One instruction of the virtual machine: a stack machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Push a constant.
    Const(Value),
    /// Push a variable.
    Load(Slot),
    /// Replace the top `args` values by the function's value.
    Call {
        /// What to call.
        function: Function,
        /// How many arguments.
        args: u16,
    },
    /// Pop into a variable.
    Store(Slot),
    /// Continue at this instruction.
    Jump(u32),
    /// Pop; continue there unless it is true. NULL and zero are not true.
    JumpUnless(u32),
    /// AND's and OR's left side: when it decides, keep it (as a boolean) and continue there; otherwise pop it.
    /// With NULL on the left both sides count.
    ShortCircuit {
        /// The boolean that decides: false for AND, true for OR.
        decides: bool,
        /// Where to continue.
        target: u32,
    },
    /// AND's and OR's end: the two top values become one, by three-valued logic.
    Combine {
        /// The boolean that decides: false for AND, true for OR.
        decides: bool,
    },
    /// Pop a number; yield a sleep of that many units.
    Sleep {
        /// Nanoseconds in one unit.
        nanos: u64,
    },
    /// Yield a statement.
    Send(u16),
    /// The transaction is over.
    Done,
}

/// A piece of a statement's text in the simple protocol.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// Text as it stands.
    Text(String),
    /// A variable's value.
    Variable(Slot),
}

/// What a statement does to the transaction that it runs in, as far as its first word tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// COMMIT, END, PREPARE TRANSACTION: its answer decides the transaction's fate.
    Commits,
    /// BEGIN, START TRANSACTION.
    Begins,
    /// ROLLBACK, ABORT.
    RollsBack,
    /// Anything else.
    Other,
}

/// One SQL statement of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// As written.
    pub text: String,
    /// With `$1`, `$2` ... for the variables: extended and prepared protocol.
    pub prepared: String,
    /// The variables of `$1`, `$2` ...
    pub parameters: Vec<Slot>,
    /// For the simple protocol.
    pub pieces: Vec<Piece>,
    /// What it does to its transaction.
    pub effect: Effect,
    /// Line in the script, from 1.
    pub line: usize,
    /// Byte offset in the script.
    pub offset: usize,
}

/// A compiled script; shared by all clients.
#[derive(Clone, Debug)]
pub struct Program {
    /// The script's name.
    pub name: String,
    /// The script's text, for messages.
    pub source: String,
    /// The instructions.
    pub ops: Vec<Op>,
    /// For each instruction, the byte offset it was compiled from.
    pub offsets: Vec<usize>,
    /// The SQL statements, by the number that [`Op::Send`] names.
    pub statements: Vec<Statement>,
    /// Names of the variables, by slot.
    pub variables: Vec<String>,
    /// Values that the variables begin with.
    pub initial: Vec<Value>,
}

impl Program {
    /// The slot of a variable, if the script uses it.
    pub fn slot(&self, name: &str) -> Option<Slot> {
        self.variables.iter().position(|v| v == name).map(|i| i as Slot)
    }

    /// Where the instruction at `pc` stands in the script, as an error.
    pub fn locate(&self, pc: usize, error: &EvalError) -> ScriptError {
        let offset = self.offsets.get(pc).copied().unwrap_or(0);
        ScriptError::at(&self.name, &self.source, offset, error.to_string(), "")
    }

    /// Where a statement stands in the script, as an error: what a server said of it.
    pub fn locate_statement(&self, statement: usize, message: &str) -> ScriptError {
        let offset = self.statements.get(statement).map_or(0, |s| s.offset);
        ScriptError::at(&self.name, &self.source, offset, message, "")
    }
}
