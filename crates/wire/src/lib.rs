//! PostgreSQL's frontend/backend protocol, version 3, without sockets: bytes in, events out.
//!
//! - [`conversation`] is what a connection says and hears, from its first byte to its last: TLS is opened
//!   (`opening`, [`tls`]), the session begins (`handshake`, `auth`), requests are made ([`Ask`]) and answered ([`event`]);
//! - [`backend`] cuts what a server sends into messages and reads their bodies, [`frontend`] writes what a client sends;
//! - [`effect`] tells what a statement may commit; [`copy`] frames COPY data;
//! - [`conn`] holds what a connection is made of; [`sqlstate`] names error codes; [`error`] says what can go wrong.

mod ask;
mod auth;
pub mod backend;
pub mod conn;
pub mod conversation;
pub mod copy;
pub mod effect;
pub mod error;
pub mod event;
pub mod frontend;
mod handshake;
mod opening;
mod server_error;
pub mod sqlstate;
pub mod tls;

pub use ask::Ask;
pub use backend::{DataRow, Message, TransactionStatus};
pub use conn::{Config, Endpoint, SslMode};
pub use conversation::Conversation;
pub use effect::Effect;
pub use error::WireError;
pub use event::{CommandTag, Event, Fate, Refusal};
pub use handshake::SessionInfo;
pub use opening::{Attempt, Cancel};
pub use server_error::ServerError;
pub use sqlstate::SqlState;
