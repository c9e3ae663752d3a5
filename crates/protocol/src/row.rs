//! Rows whose values are read.

use crate::error::ProtocolError;

/// The values of a row as text, column by column; `None` is NULL.
#[derive(Clone, Debug)]
pub struct DataRow<'a> {
    left: usize,
    rest: &'a [u8],
}

impl<'a> DataRow<'a> {
    /// Reads the body of a DataRow; fails where it ends too early.
    pub fn parse(body: &'a [u8]) -> Result<DataRow<'a>, ProtocolError> {
        let bad = || ProtocolError::Protocol("a DataRow that ends too early".into());
        let (count, rest) = body.split_first_chunk::<2>().ok_or_else(bad)?;
        let row = DataRow { left: usize::from(u16::from_be_bytes(*count)), rest };
        let mut values = row.clone();
        for _ in 0..row.left {
            values.take_value().ok_or_else(bad)?;
        }
        Ok(row)
    }

    /// `None`: it ends too early.
    #[inline]
    fn take_value(&mut self) -> Option<Option<&'a [u8]>> {
        let (length, after) = self.rest.split_first_chunk::<4>()?;
        let value = match i32::from_be_bytes(*length) {
            -1 => None,
            n => Some(after.get(..usize::try_from(n).ok()?)?),
        };
        self.rest = &after[value.map_or(0, <[u8]>::len)..];
        self.left = self.left.saturating_sub(1);
        Some(value)
    }
}

impl<'a> Iterator for DataRow<'a> {
    type Item = Option<&'a [u8]>;

    #[inline]
    fn next(&mut self) -> Option<Option<&'a [u8]>> {
        if self.left == 0 { None } else { self.take_value() }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for DataRow<'_> {}
