//! PostgreSQL's frontend/backend protocol, version 3, without sockets: bytes in, events out.
//!
//! - [`conversation`] is what a connection says and hears, from its first byte to its last: TLS is opened
//!   (`opening`, [`tls`]), the session begins (`handshake`, `auth`), requests are made and answered;
//! - [`backend`] cuts what a server sends into messages and reads their bodies, [`frontend`] writes what a client sends;
//! - [`effect`] tells what a statement may commit; [`copy`] frames COPY data;
//! - [`conn`] holds what a connection is made of; [`sqlstate`] names error codes; [`error`] says what can go wrong.

mod auth;
pub mod backend;
pub mod conn;
pub mod conversation;
pub mod copy;
pub mod effect;
pub mod error;
pub mod frontend;
mod handshake;
mod opening;
pub mod sqlstate;
pub mod tls;

pub use backend::{Message, ServerError, TransactionStatus};
pub use conn::{Config, Endpoint, SslMode};
pub use conversation::{Ask, CommandTag, Conversation, Event, Fate, Refusal};
pub use effect::Effect;
pub use error::WireError;
pub use handshake::SessionInfo;
pub use opening::{Attempt, Cancel};
pub use sqlstate::SqlState;
