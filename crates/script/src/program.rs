//! A compiled script.

use crate::error::{EvalError, ScriptError};
use crate::flavour::Flavour;
use crate::functions::Function;
use crate::value::Scalar;

/// The index of a variable in a client's table.
pub type Slot = u16;

/// One instruction of the virtual machine: a stack machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Push a constant.
    Const(Scalar),
    /// Push a variable.
    Load(Slot),
    /// Replace the two top values by the operator's value.
    Binary(Function),
    /// Replace the top `args` values by the function's value.
    Call {
        /// Function to call.
        function: Function,
        /// Number of arguments.
        args: u16,
    },
    /// Pop into a variable.
    Store(Slot),
    /// Continue at this instruction.
    Jump(u32),
    /// Pop; continue there unless it is true. NULL and zero are not true.
    JumpUnless(u32),
    /// AND's and OR's left side: when it decides or is NULL, keep it and continue there; otherwise pop it.
    ShortCircuit {
        /// The boolean that decides: false for AND, true for OR.
        decides: bool,
        /// Instruction to continue at.
        target: u32,
    },
    /// AND's and OR's right side is their value: it must be a boolean or NULL.
    Boolean,
    /// Draw a row of a sample into variables.
    Pick(u16),
    /// Yield a sleep.
    Sleep(Delay),
    /// Yield a statement.
    Send(u16),
    /// Yield a shell command.
    Shell(u16),
    /// Yield the beginning of a pipeline that holds these statements.
    StartPipeline {
        /// Number of its first statement.
        first: u16,
        /// Number of the statement behind its last.
        end: u16,
    },
    /// Yield a synchronisation within a pipeline.
    SyncPipeline,
    /// Yield the end of a pipeline.
    EndPipeline,
    /// Fail: no variable can have the name that this command gives it.
    BadName(u16),
    /// Yield the command that begins here; only in programs compiled for per-command figures.
    Mark(u16),
    /// The transaction is over.
    Done,
}

/// Duration of a `\\sleep`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delay {
    /// So many nanoseconds.
    Fixed(u64),
    /// Number of units, given by a variable.
    Variable {
        /// The variable.
        slot: Slot,
        /// Nanoseconds in one unit.
        unit: u64,
    },
}

/// A piece of a statement's text in the simple protocol.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// Text as it stands.
    Text(String),
    /// A variable's value; while it has none, its name with the colon.
    Variable(Slot),
}

/// Use of a statement's result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Capture {
    /// It is thrown away.
    #[default]
    Nothing,
    /// `\\gset`: the one row of the last query goes into variables; their names begin with this.
    Last(String),
    /// `\\aset`: the last row of each query that has one.
    Each(String),
}

/// A command of a script, as reports and messages name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Its first line as pgbench shows it, semicolon included.
    pub text: String,
    /// `SQL`, or the meta-command's name as written.
    pub name: String,
    /// The number of its statement, if it is SQL.
    pub statement: Option<usize>,
    /// Line in the script, from 1.
    pub line: usize,
    /// Byte offset in the script.
    pub offset: usize,
}

/// A word of a shell command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShellWord {
    /// Literal text.
    Text(String),
    /// A variable's value.
    Variable(Slot),
}

/// `\\shell` and `\\setshell`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shell {
    /// The words, to be joined by blanks.
    pub words: Vec<ShellWord>,
    /// It prints a number.
    pub reads: bool,
    /// The variable that takes the number it prints.
    pub assign: Option<Slot>,
}

/// `\\pick`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The number of the sample.
    pub sample: usize,
    /// The variables that take the values of its columns.
    pub slots: Vec<Slot>,
}

/// One SQL statement of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Text as written, without its semicolon.
    pub text: String,
    /// Text with `$1`, `$2` ... in place of the variables, for the extended and prepared protocols.
    pub prepared: String,
    /// The variables of `$1`, `$2` ...
    pub parameters: Vec<Slot>,
    /// For the simple protocol.
    pub pieces: Vec<Piece>,
    /// Line in the script, from 1.
    pub line: usize,
    /// Byte offset in the script.
    pub offset: usize,
    /// Its number among the script's commands.
    pub command: usize,
    /// Use of the statement's result.
    pub capture: Capture,
}

/// A compiled script; shared by all clients.
#[derive(Clone, Debug)]
pub struct Program {
    /// Product whose SQL the statements are in.
    pub flavour: Flavour,
    /// The script's name.
    pub name: String,
    /// The script's text, for messages.
    pub source: String,
    /// The instructions.
    pub ops: Vec<Op>,
    /// For each instruction, the byte offset it was compiled from.
    pub offsets: Vec<usize>,
    /// The most values that the stack ever holds.
    pub depth: usize,
    /// The SQL statements, by the number that [`Op::Send`] names.
    pub statements: Vec<Statement>,
    /// For each instruction, the command that it belongs to.
    pub owners: Vec<u16>,
    /// All commands, in order.
    pub commands: Vec<Command>,
    /// The shell commands, by the number that [`Op::Shell`] names.
    pub shells: Vec<Shell>,
    /// The `\\pick`s, by the number that [`Op::Pick`] names.
    pub picks: Vec<Pick>,
}

impl Program {
    /// The command that the instruction at `pc` belongs to.
    pub fn command_at(&self, pc: usize) -> usize {
        self.owners.get(pc).map_or(self.commands.len(), |c| usize::from(*c))
    }

    /// Returns `error` as a script error, located at the instruction at `pc`.
    pub fn locate(&self, pc: usize, error: &EvalError) -> ScriptError {
        let offset = self.offsets.get(pc).copied().unwrap_or(0);
        ScriptError::at(&self.name, &self.source, offset, error.to_string(), "")
    }

    /// Returns a server's message about a command as a script error, located at the command.
    pub fn locate_command(&self, command: usize, message: &str) -> ScriptError {
        let offset = self.commands.get(command).map_or(0, |c| c.offset);
        ScriptError::at(&self.name, &self.source, offset, message, "")
    }
}
