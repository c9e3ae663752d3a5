//! PostgreSQL's frontend/backend protocol, version 3, without sockets: bytes in, events out.
//!
//! - [`conversation`] is what a connection says and hears, from its first byte to its last: TLS is opened (`opening`),
//!   the session begins (`handshake`, `auth`), requests are made ([`Ask`]) and answered;
//! - [`backend`] cuts what a server sends into messages and reads their bodies, [`frontend`] writes what a client sends;
//! - [`copy`] frames COPY data; [`conn`] holds what a connection is made of;
//! - [`served`] is the server's side of it;
//! - `dialect` is the protocol behind the traits of [`pgdyno_protocol`], whose types it has as well.

mod ask;
mod auth;
pub mod backend;
pub mod conn;
pub mod conversation;
pub mod copy;
mod dialect;
pub mod frontend;
mod handshake;
mod opening;
pub mod served;

pub use ask::Ask;
pub use backend::Message;
pub use conn::Config;
pub use conversation::Conversation;
pub use dialect::Postgres;
pub use opening::Cancel;
pub use pgdyno_protocol::{
    Attempt, CommandTag, DataRow, Effect, Endpoint, Event, Fate, Given, ProtocolError, QueryMode, Refusal, Sending,
    ServerError, SessionInfo, SqlState, SslMode, Statement, TransactionStatus, tls,
};
