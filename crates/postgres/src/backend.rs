//! What a server sends: messages cut from a stream of bytes. The header is read first, a body only on demand.

use pgdyno_protocol::{CommandTag, ProtocolError, ServerError, SqlState, TransactionStatus};

/// Larger messages than this are taken for noise (PostgreSQL's own limit is 1 GiB).
const MAX_LENGTH: usize = 1 << 30;

/// Tags of the messages that matter here.
pub mod tag {
    #![allow(missing_docs)]
    pub const AUTHENTICATION: u8 = b'R';
    pub const BACKEND_KEY_DATA: u8 = b'K';
    pub const BIND_COMPLETE: u8 = b'2';
    pub const CLOSE_COMPLETE: u8 = b'3';
    pub const COMMAND_COMPLETE: u8 = b'C';
    pub const COPY_BOTH_RESPONSE: u8 = b'W';
    pub const COPY_DATA: u8 = b'd';
    pub const COPY_DONE: u8 = b'c';
    pub const COPY_IN_RESPONSE: u8 = b'G';
    pub const COPY_OUT_RESPONSE: u8 = b'H';
    pub const DATA_ROW: u8 = b'D';
    pub const EMPTY_QUERY: u8 = b'I';
    pub const ERROR: u8 = b'E';
    pub const NEGOTIATE_VERSION: u8 = b'v';
    pub const NO_DATA: u8 = b'n';
    pub const NOTICE: u8 = b'N';
    pub const NOTIFICATION: u8 = b'A';
    pub const PARAMETER_DESCRIPTION: u8 = b't';
    pub const PARAMETER_STATUS: u8 = b'S';
    pub const PARSE_COMPLETE: u8 = b'1';
    pub const PORTAL_SUSPENDED: u8 = b's';
    pub const READY_FOR_QUERY: u8 = b'Z';
    pub const ROW_DESCRIPTION: u8 = b'T';
}

/// Returns the protocol's name of a message, or `None` if the tag is unknown.
pub fn name_of(tag: u8) -> Option<&'static str> {
    Some(match tag {
        tag::AUTHENTICATION => "Authentication",
        tag::BACKEND_KEY_DATA => "BackendKeyData",
        tag::BIND_COMPLETE => "BindComplete",
        tag::CLOSE_COMPLETE => "CloseComplete",
        tag::COMMAND_COMPLETE => "CommandComplete",
        tag::COPY_BOTH_RESPONSE => "CopyBothResponse",
        tag::COPY_DATA => "CopyData",
        tag::COPY_DONE => "CopyDone",
        tag::COPY_IN_RESPONSE => "CopyInResponse",
        tag::COPY_OUT_RESPONSE => "CopyOutResponse",
        tag::DATA_ROW => "DataRow",
        tag::EMPTY_QUERY => "EmptyQueryResponse",
        tag::ERROR => "ErrorResponse",
        tag::NO_DATA => "NoData",
        tag::PARAMETER_DESCRIPTION => "ParameterDescription",
        tag::PARSE_COMPLETE => "ParseComplete",
        tag::PORTAL_SUSPENDED => "PortalSuspended",
        tag::READY_FOR_QUERY => "ReadyForQuery",
        tag::ROW_DESCRIPTION => "RowDescription",
        _ => return None,
    })
}

/// One message, borrowed from the buffer it arrived in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Type of the message.
    pub tag: u8,
    /// Its body, behind tag and length.
    pub body: &'a [u8],
}

/// The first message of `buf` and its length in bytes; `None` while it is not complete.
#[inline]
pub fn next_message(buf: &[u8]) -> Result<Option<(Message<'_>, usize)>, ProtocolError> {
    let Some((header, _)) = buf.split_first_chunk::<5>() else { return Ok(None) };
    let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
    if !(4..=MAX_LENGTH).contains(&length) || !header[0].is_ascii_alphanumeric() {
        return Err(ProtocolError::Protocol(format!(
            "a message with tag 0x{:02x} and length {length} cannot be",
            header[0]
        )));
    }
    match buf.get(5..length + 1) {
        Some(body) => Ok(Some((Message { tag: header[0], body }, length + 1))),
        None => Ok(None),
    }
}

/// Reads the body of ReadyForQuery.
#[inline]
pub fn ready_for_query(body: &[u8]) -> Result<TransactionStatus, ProtocolError> {
    match body {
        b"I" => Ok(TransactionStatus::Idle),
        b"T" => Ok(TransactionStatus::InBlock),
        b"E" => Ok(TransactionStatus::Failed),
        _ => Err(ProtocolError::Protocol("ReadyForQuery with an unknown transaction status".into())),
    }
}

/// Names of the columns that a RowDescription describes.
pub fn column_names(body: &[u8]) -> Result<Vec<String>, ProtocolError> {
    let bad = || ProtocolError::Protocol("a RowDescription that ends too early".into());
    let (count, mut rest) = body.split_first_chunk::<2>().ok_or_else(bad)?;
    let mut names = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let end = rest.iter().position(|b| *b == 0).ok_or_else(bad)?;
        names.push(String::from_utf8_lossy(&rest[..end]).into_owned());
        // Table, column, type, its length and modifier, format.
        rest = rest.get(end + 1 + 18..).ok_or_else(bad)?;
    }
    Ok(names)
}

/// Reads a NUL-terminated string: it and what follows.
pub fn cstr(body: &[u8]) -> Result<(&str, &[u8]), ProtocolError> {
    let end = body
        .iter()
        .position(|b| *b == 0)
        .ok_or_else(|| ProtocolError::Protocol("a string without its terminating zero".into()))?;
    let text =
        std::str::from_utf8(&body[..end]).map_err(|_| ProtocolError::Protocol("a string that is not UTF-8".into()))?;
    Ok((text, &body[end + 1..]))
}

/// Reads the body of ParameterStatus: name and value.
pub fn parameter_status(body: &[u8]) -> Result<(&str, &str), ProtocolError> {
    let (name, rest) = cstr(body)?;
    let (value, _) = cstr(rest)?;
    Ok((name, value))
}

/// Reads the body of BackendKeyData: process id and secret (4 bytes in protocol 3.0, up to 256 in 3.2).
pub fn backend_key(body: &[u8]) -> Result<(u32, Vec<u8>), ProtocolError> {
    match body.split_first_chunk::<4>() {
        Some((pid, secret)) if (4..=256).contains(&secret.len()) => Ok((u32::from_be_bytes(*pid), secret.to_vec())),
        _ => Err(ProtocolError::Protocol("BackendKeyData of an unknown form".into())),
    }
}

/// Reads the body of CommandComplete.
#[inline]
pub fn command_tag(body: &[u8]) -> CommandTag {
    match body {
        b"COMMIT\0" => CommandTag::Commit,
        b"ROLLBACK\0" => CommandTag::Rollback,
        // "UPDATE 0", "SELECT 0", "INSERT 0 0": the count of rows is the last word.
        [.., b' ', b'0', 0] => CommandTag::Nothing,
        _ => CommandTag::Other,
    }
}

/// Reads the body of ErrorResponse or NoticeResponse. Fields that are cut off or not UTF-8 do not fail it: half an
/// error is better than none.
pub fn server_error(body: &[u8]) -> ServerError {
    let mut error = ServerError::default();
    for field in body.split(|b| *b == 0) {
        let Some((kind, text)) = field.split_first() else { continue };
        let text = bounded(text);
        match kind {
            b'S' if error.severity.is_empty() => error.severity = text,
            b'V' => error.severity = text,
            b'C' => error.code = Some(SqlState::parse(&text)),
            b'M' => error.message = text,
            b'D' => error.detail = Some(text),
            b'H' => error.hint = Some(text),
            b'W' => error.context = Some(text),
            b'P' => error.position = text.parse().ok(),
            b'p' => error.internal_position = text.parse().ok(),
            b'q' => error.internal_query = Some(text),
            _ => {}
        }
    }
    error
}

/// Bytes of a field that are kept: more says no more, and a server may send without end.
const FIELD_MAX: usize = 64 << 10;

/// A field as text, its beginning if it is longer than that.
fn bounded(field: &[u8]) -> String {
    let kept = &field[..field.len().min(FIELD_MAX)];
    let mut text = String::from_utf8_lossy(kept).into_owned();
    if kept.len() < field.len() {
        text.push_str(&format!(" … ({} bytes in all)", field.len()));
    }
    text
}
