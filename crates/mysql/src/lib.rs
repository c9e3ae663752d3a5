//! MySQL's client/server protocol, as MySQL and MariaDB speak it, without sockets: bytes in, events out.
//!
//! - [`conversation`] is what a connection says and hears, from the server's greeting to its last packet: TLS, then
//!   authentication (`handshake`, [`auth`]), then requests and their answers;
//! - [`packet`] frames packets and reads and writes what they are made of, [`values`] encodes parameters and decodes rows;
//! - [`config`] holds what a connection is made of, `cancel` stops a statement, `dialect` is all of it behind the traits
//!   of [`pgdyno_protocol`].

pub mod auth;
mod cancel;
pub mod config;
pub mod conversation;
mod dialect;
mod errors;
mod handshake;
pub mod packet;
pub mod values;

pub use cancel::Cancel;
pub use config::Config;
pub use conversation::Conversation;
pub use dialect::MySql;
