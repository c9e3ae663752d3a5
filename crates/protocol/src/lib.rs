//! What all protocols of database servers share, without sockets: requests go in, bytes come out, and the other way round.
//!
//! - [`conversation`] has the traits: a [`Dialect`] names the types of a product, its [`Conversation`] is one connection;
//! - [`either`] has two products in one run;
//! - [`event`] is what a conversation tells of a server, [`row`] a row that is read, [`session`] what a server tells of
//!   itself;
//! - [`effect`] tells what a statement may commit;
//! - [`endpoint`] is where a server is, [`tls`] encrypts the way to it;
//! - [`error`], [`server_error`] and [`sqlstate`] say what can go wrong.

pub mod conversation;
pub mod effect;
pub mod either;
pub mod endpoint;
pub mod error;
pub mod event;
pub mod row;
pub mod server_error;
pub mod session;
pub mod sqlstate;
pub mod tls;

pub use conversation::{Attempt, Cancel, Conversation, Dialect, Given, QueryMode, Sending, Statement, Target};
pub use effect::{Effect, Lexicon};
pub use either::{Either, OneOf};
pub use endpoint::{Endpoint, SslMode};
pub use error::ProtocolError;
pub use event::{CommandTag, Event, Fate, Refusal, TransactionStatus};
pub use row::DataRow;
pub use server_error::ServerError;
pub use session::SessionInfo;
pub use sqlstate::SqlState;
