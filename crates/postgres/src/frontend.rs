//! What a client sends, appended to a buffer.

use pgdyno_protocol::Given;

/// Appends a message whose body `write` appends; the length is filled in behind it.
#[inline]
pub(crate) fn message(out: &mut Vec<u8>, tag: u8, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    framed(out, write);
}

/// Appends a length, which counts itself, and what `write` appends.
#[inline]
fn framed(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

fn cstr(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// SSLRequest.
pub fn ssl_request(out: &mut Vec<u8>) {
    framed(out, |o| o.extend_from_slice(&80_877_103u32.to_be_bytes()));
}

/// StartupMessage, protocol 3.0.
pub fn startup(out: &mut Vec<u8>, parameters: &[(&str, &str)]) {
    framed(out, |o| {
        o.extend_from_slice(&196_608u32.to_be_bytes());
        for (name, value) in parameters {
            cstr(o, name);
            cstr(o, value);
        }
        o.push(0);
    });
}

/// CancelRequest: goes over a connection of its own, which the server then closes.
pub fn cancel_request(out: &mut Vec<u8>, process: u32, secret: &[u8]) {
    framed(out, |o| {
        o.extend_from_slice(&80_877_102u32.to_be_bytes());
        o.extend_from_slice(&process.to_be_bytes());
        o.extend_from_slice(secret);
    });
}

/// PasswordMessage (also the MD5 answer).
pub fn password(out: &mut Vec<u8>, text: &str) {
    message(out, b'p', |o| cstr(o, text));
}

/// SASLInitialResponse.
pub fn sasl_initial(out: &mut Vec<u8>, mechanism: &str, response: &[u8]) {
    message(out, b'p', |o| {
        cstr(o, mechanism);
        o.extend_from_slice(&(response.len() as u32).to_be_bytes());
        o.extend_from_slice(response);
    });
}

/// SASLResponse.
pub fn sasl(out: &mut Vec<u8>, response: &[u8]) {
    message(out, b'p', |o| o.extend_from_slice(response));
}

/// Query, whose text `write` appends: the simple protocol.
#[inline]
pub fn query_with(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    message(out, b'Q', |o| {
        write(o);
        o.push(0);
    });
}

/// Query.
pub fn query(out: &mut Vec<u8>, sql: &str) {
    query_with(out, |o| o.extend_from_slice(sql.as_bytes()));
}

/// Parse; the server infers the parameters' types.
pub fn parse(out: &mut Vec<u8>, name: &str, sql: &str) {
    message(out, b'P', |o| {
        cstr(o, name);
        cstr(o, sql);
        o.extend_from_slice(&[0, 0]);
    });
}

/// Bind to the unnamed portal, everything in text format; `write(n, out)` appends parameter `n` and says whether it is
/// not NULL.
#[inline]
pub fn bind(out: &mut Vec<u8>, statement: &str, parameters: usize, mut write: impl FnMut(usize, &mut Vec<u8>) -> bool) {
    message(out, b'B', |o| {
        o.push(0);
        cstr(o, statement);
        o.extend_from_slice(&[0, 0]);
        o.extend_from_slice(&(parameters as u16).to_be_bytes());
        for n in 0..parameters {
            let start = o.len();
            o.extend_from_slice(&[0xff; 4]);
            if write(n, o) {
                let length = (o.len() - start - 4) as u32;
                o[start..start + 4].copy_from_slice(&length.to_be_bytes());
            } else {
                o.truncate(start + 4);
            }
        }
        o.extend_from_slice(&[0, 0]);
    });
}

/// Bind as [`bind`] does, to a program that is no PostgreSQL server: the format code of a parameter tells its kind (2: a
/// Boolean, 3: an integer, 4: a double, else text), and all of them are text. A format code for results tells that rows are
/// read.
pub fn bind_of_kinds(
    out: &mut Vec<u8>,
    statement: &str,
    parameters: usize,
    reads: bool,
    mut write: impl FnMut(usize, &mut Vec<u8>) -> Given,
) {
    message(out, b'B', |o| {
        o.push(0);
        cstr(o, statement);
        o.extend_from_slice(&(parameters as u16).to_be_bytes());
        let codes = o.len();
        o.resize(codes + 2 * parameters, 0);
        o.extend_from_slice(&(parameters as u16).to_be_bytes());
        for n in 0..parameters {
            let start = o.len();
            o.extend_from_slice(&[0xff; 4]);
            let kind = write(n, o);
            if kind == Given::Null {
                o.truncate(start + 4);
            } else {
                let length = (o.len() - start - 4) as u32;
                o[start..start + 4].copy_from_slice(&length.to_be_bytes());
            }
            o[codes + 2 * n + 1] = match kind {
                Given::Boolean => 2,
                Given::Integer => 3,
                Given::Double => 4,
                Given::Null | Given::Text => 0,
            };
        }
        o.extend_from_slice(if reads { &[0, 1, 0, 0] } else { &[0, 0] });
    });
}

/// Describe the unnamed portal: the answer names the columns.
#[inline]
pub fn describe(out: &mut Vec<u8>) {
    out.extend_from_slice(b"D\0\0\0\x06P\0");
}

/// Execute the unnamed portal, all rows.
#[inline]
pub fn execute(out: &mut Vec<u8>) {
    out.extend_from_slice(b"E\0\0\0\x09\0\0\0\0\0");
}

/// Sync.
#[inline]
pub fn sync(out: &mut Vec<u8>) {
    out.extend_from_slice(b"S\0\0\0\x04");
}

/// CopyFail.
pub fn copy_fail(out: &mut Vec<u8>, reason: &str) {
    message(out, b'f', |o| cstr(o, reason));
}

/// CopyDone.
pub fn copy_done(out: &mut Vec<u8>) {
    out.extend_from_slice(b"c\0\0\0\x04");
}

/// CopyData, whose body `write` appends.
#[inline]
pub fn copy_data(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    message(out, b'd', write);
}

/// Terminate.
pub fn terminate(out: &mut Vec<u8>) {
    out.extend_from_slice(b"X\0\0\0\x04");
}
