//! PostgreSQL's frontend/backend protocol, version 3, without sockets: bytes in, events out.
//!
//! - [`backend`] cuts what a server sends into messages and reads their bodies;
//! - [`frontend`] writes what a client sends;
//! - [`conn`] holds what a connection is made of, and [`handshake`] carries one from the first byte to the first
//!   ReadyForQuery: TLS ([`tls`]), then authentication ([`auth`]), then parameters;
//! - [`copy`] frames COPY data; [`sqlstate`] names error codes; [`error`] says what can go wrong.

pub mod auth;
pub mod backend;
pub mod conn;
pub mod copy;
pub mod error;
pub mod frontend;
pub mod handshake;
pub mod sqlstate;
pub mod tls;

pub use backend::{Message, ServerError};
pub use conn::{Config, Endpoint, SslMode};
pub use error::WireError;
pub use handshake::{Handshake, Progress, SessionInfo};
pub use sqlstate::SqlState;
