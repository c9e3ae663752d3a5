//! Packets, and what they are made of: integers of a length-encoded kind, strings.
//!
//! A packet has a header of 4 bytes (length, little-endian in 3, and a sequence number) and up to 16 MiB - 1 of payload;
//! a payload of that length is continued by the next packet. "Client/Server Protocol" of MySQL's source documentation.

use pgdyno_protocol::ProtocolError;

/// Payload of a packet that is continued by the next one.
pub const MAX_PAYLOAD: usize = 0xff_ffff;
/// Longest payload that is kept: what is longer is read by nobody, or is an attack.
pub const MAX_KEPT: usize = 64 << 20;
/// Bytes of the buffer that is kept for the next payload.
const SPARE: usize = 16 * 1024;

/// Appends the packets of a payload that `write` appends, from sequence number `sequence` on; returns the number behind the
/// last one's.
#[inline]
pub fn packet(out: &mut Vec<u8>, sequence: u8, write: impl FnOnce(&mut Vec<u8>)) -> u8 {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = out.len() - start - 4;
    if length < MAX_PAYLOAD {
        out[start..start + 3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
        out[start + 3] = sequence;
        return sequence.wrapping_add(1);
    }
    split(out, start, sequence)
}

#[cold]
fn split(out: &mut Vec<u8>, start: usize, mut sequence: u8) -> u8 {
    let payload = out.split_off(start + 4);
    out.truncate(start);
    let mut rest = payload.as_slice();
    loop {
        let (now, after) = rest.split_at(rest.len().min(MAX_PAYLOAD));
        out.extend_from_slice(&(now.len() as u32).to_le_bytes()[..3]);
        out.push(sequence);
        out.extend_from_slice(now);
        sequence = sequence.wrapping_add(1);
        // A payload that fills its packet is followed by one more, an empty one if need be.
        if now.len() < MAX_PAYLOAD {
            return sequence;
        }
        rest = after;
    }
}

/// Appends an integer in its length-encoded form.
pub fn length_encoded(out: &mut Vec<u8>, n: u64) {
    match n {
        0..=0xfa => out.push(n as u8),
        0xfb..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&(n as u16).to_le_bytes());
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&(n as u32).to_le_bytes()[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&n.to_le_bytes());
        }
    }
}

/// Appends a string with its length.
pub fn string(out: &mut Vec<u8>, text: &[u8]) {
    length_encoded(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// Reads what payloads are made of; each fails where the payload ends too early.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the beginning of `payload`.
    #[inline]
    pub fn new(payload: &'a [u8]) -> Reader<'a> {
        Reader { rest: payload }
    }

    /// Returns the bytes that are left.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `n` bytes.
    #[inline]
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], ProtocolError> {
        let (now, rest) = self.rest.split_at_checked(n).ok_or_else(short)?;
        self.rest = rest;
        Ok(now)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], ProtocolError> {
        let (now, rest) = self.rest.split_first_chunk::<N>().ok_or_else(short)?;
        self.rest = rest;
        Ok(*now)
    }

    /// A byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, ProtocolError> {
        Ok(self.array::<1>()?[0])
    }

    /// An integer of two bytes.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, ProtocolError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// An integer of four bytes.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, ProtocolError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// An integer of eight bytes.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, ProtocolError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// An integer in its length-encoded form; `None` is NULL.
    #[inline]
    pub fn length_or_null(&mut self) -> Result<Option<u64>, ProtocolError> {
        Ok(Some(match self.u8()? {
            n @ 0..=0xfa => u64::from(n),
            0xfb => return Ok(None),
            0xfc => u64::from(self.u16()?),
            0xfd => {
                let [a, b, c] = self.array::<3>()?;
                u64::from(u32::from_le_bytes([a, b, c, 0]))
            }
            0xfe => self.u64()?,
            0xff => return Err(ProtocolError::Protocol("a length that cannot be".into())),
        }))
    }

    /// An integer in its length-encoded form.
    #[inline]
    pub fn length(&mut self) -> Result<u64, ProtocolError> {
        self.length_or_null()?.ok_or_else(|| ProtocolError::Protocol("NULL where a length must be".into()))
    }

    /// A string with its length; `None` is NULL.
    #[inline]
    pub fn string_or_null(&mut self) -> Result<Option<&'a [u8]>, ProtocolError> {
        match self.length_or_null()? {
            None => Ok(None),
            Some(n) => self.bytes(usize::try_from(n).map_err(|_| short())?).map(Some),
        }
    }

    /// A string with its length.
    #[inline]
    pub fn string(&mut self) -> Result<&'a [u8], ProtocolError> {
        let n = self.length()?;
        self.bytes(usize::try_from(n).map_err(|_| short())?)
    }

    /// A string that a zero ends.
    pub fn until_zero(&mut self) -> Result<&'a [u8], ProtocolError> {
        let end = self.rest.iter().position(|b| *b == 0).ok_or_else(short)?;
        let text = self.bytes(end)?;
        self.bytes(1)?;
        Ok(text)
    }
}

#[cold]
fn short() -> ProtocolError {
    ProtocolError::Protocol("a packet that ends too early".into())
}

/// A payload that has arrived.
pub enum Payload<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// One that nobody reads.
    Skipped,
}

/// Cuts a stream of bytes into payloads; keeps what has not arrived to its end.
#[derive(Debug, Default)]
pub struct Frames {
    header: [u8; 4],
    /// Bytes of the header that are there.
    got: usize,
    /// Bytes of the packet that are to come.
    left: usize,
    /// The payload so far.
    body: Vec<u8>,
    /// A payload has begun and is not complete.
    is_open: bool,
    /// Nobody reads it.
    skips: bool,
    /// The number of the packet was looked at.
    is_counted: bool,
}

impl Frames {
    /// Memory that is kept, in bytes.
    pub fn memory(&self) -> usize {
        self.body.capacity()
    }

    /// Takes the next payload from `input`; `None`: it has not arrived to its end, and `input` is taken. `sequence` is the
    /// number that its packets must have, and is raised. `is_unread` tells by the first byte and the length of a packet
    /// whether nobody reads it.
    #[inline]
    pub fn take<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
        sequence: &mut u8,
        is_unread: impl Fn(u8, usize) -> bool,
    ) -> Result<Option<Payload<'s>>, ProtocolError> {
        if self.got == 0 && !self.is_open {
            if let Some((header, rest)) = input.split_first_chunk::<4>() {
                let length = length_of(*header);
                if length < MAX_PAYLOAD && rest.len() >= length {
                    let (payload, rest) = rest.split_at(length);
                    in_order(header[3], sequence, payload.first())?;
                    *input = rest;
                    return Ok(Some(Payload::Whole(payload)));
                }
            }
        }
        self.take_in_parts(input, sequence, is_unread)
    }

    #[cold]
    fn take_in_parts(
        &mut self,
        input: &mut &[u8],
        sequence: &mut u8,
        is_unread: impl Fn(u8, usize) -> bool,
    ) -> Result<Option<Payload<'_>>, ProtocolError> {
        if !self.is_open && self.got == 0 {
            if self.body.capacity() > SPARE {
                self.body = Vec::new();
            }
            self.body.clear();
            self.skips = false;
        }
        loop {
            while self.got < 4 {
                let Some((first, rest)) = input.split_first() else { return Ok(None) };
                self.header[self.got] = *first;
                self.got += 1;
                *input = rest;
                if self.got == 4 {
                    self.left = length_of(self.header);
                    self.is_counted = false;
                }
            }
            if !self.is_counted {
                let first = input.first();
                if self.left > 0 && first.is_none() {
                    return Ok(None);
                }
                in_order(self.header[3], sequence, first.filter(|_| !self.is_open))?;
                self.is_counted = true;
            }
            if !self.is_open && self.left > 0 {
                let Some(first) = input.first() else { return Ok(None) };
                self.skips = is_unread(*first, self.left);
            }
            self.is_open = true;
            let n = self.left.min(input.len());
            let (now, rest) = input.split_at(n);
            if !self.skips {
                if self.body.len() + self.left > MAX_KEPT {
                    return Err(ProtocolError::Protocol(format!("a packet of more than {MAX_KEPT} bytes")));
                }
                self.body.extend_from_slice(now);
            }
            *input = rest;
            self.left -= n;
            if self.left > 0 {
                return Ok(None);
            }
            self.got = 0;
            if length_of(self.header) < MAX_PAYLOAD {
                self.is_open = false;
                return Ok(Some(if self.skips { Payload::Skipped } else { Payload::Whole(&self.body) }));
            }
        }
    }
}

#[inline]
fn length_of(header: [u8; 4]) -> usize {
    u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize
}

/// Checks the number of a packet. A server that ends a session, or refuses data while they are sent, does so with a number
/// of its own: `first`, the first byte of a payload, tells an ERR packet.
#[inline]
fn in_order(found: u8, expected: &mut u8, first: Option<&u8>) -> Result<(), ProtocolError> {
    if found != *expected && first != Some(&0xff) {
        return Err(ProtocolError::Protocol(format!("a packet with number {found} where {expected} is due")));
    }
    *expected = found.wrapping_add(1);
    Ok(())
}
