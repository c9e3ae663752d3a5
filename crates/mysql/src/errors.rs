//! ERR packets.

use crate::packet::Reader;
use pgdyno_protocol::{ProtocolError, ServerError, SqlState};

/// Longest message that is kept, bytes.
const LONGEST: usize = 64 << 10;

/// An error as the server numbers it.
pub(crate) struct Numbered {
    pub number: u16,
    pub error: ServerError,
}

impl Numbered {
    /// Returns true if the server ends the session behind this error: shutdown, KILL, idle for too long, a lost link.
    pub fn ends_session(&self) -> bool {
        matches!(self.number, 1053 | 1153 | 1156 | 1158..=1161 | 1184 | 1927 | 3169 | 4031)
    }
}

/// Reads an ERR packet, whose first byte is 0xff. Before authentication it may have no SQLSTATE.
pub(crate) fn read(payload: &[u8]) -> Result<Numbered, ProtocolError> {
    let mut r = Reader::new(payload);
    r.u8()?;
    let number = r.u16()?;
    let mut code = String::from("HY000");
    if r.rest().first() == Some(&b'#') {
        r.u8()?;
        code = String::from_utf8_lossy(r.bytes(5)?).into_owned();
    }
    // HY000 stands for "any other error": the number says which.
    if code == "HY000" {
        code = if number < 10_000 { format!("M{number:04}") } else { number.to_string() };
    }
    let text = r.rest();
    let message = String::from_utf8_lossy(&text[..text.len().min(LONGEST)]).into_owned();
    let error = ServerError {
        severity: "ERROR".into(),
        code: Some(SqlState::parse(&code)),
        message: format!("{message} (error {number})"),
        ..ServerError::default()
    };
    Ok(Numbered { number, error })
}
