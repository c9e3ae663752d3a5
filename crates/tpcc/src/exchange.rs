//! What a transaction and its client have between them: statements that are asked, and rows that answer them.
//!
//! The transaction calls [`Exchange::ask`] any number of times and awaits [`Exchange::answers`]. The client finds the
//! questions, sends them in one round trip or in several, puts in the rows as they arrive, and lets the transaction go on
//! when all are answered. Nothing here knows of sockets or time.

use std::future::poll_fn;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;

/// A parameter.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// An integer.
    Int(u64),
    /// An amount of money, in cents.
    Cents(i64),
    /// A text.
    Text(&'a [u8]),
    /// An array of integers.
    Ints(&'a [u64]),
    /// Yes or no.
    Bool(bool),
}

/// Statements that are asked. One piece of memory holds the parameters' texts of all, and is used again and again.
#[derive(Debug, Default)]
struct Questions {
    /// The statement, and where its parameters end in `ends`.
    asked: Vec<(usize, usize)>,
    bytes: Vec<u8>,
    /// End of each parameter in `bytes`.
    ends: Vec<usize>,
}

impl Questions {
    fn push(&mut self, statement: usize, args: &[Arg<'_>]) {
        for arg in args {
            write(*arg, &mut self.bytes);
            self.ends.push(self.bytes.len());
        }
        self.asked.push((statement, self.ends.len()));
    }

    fn len(&self) -> usize {
        self.asked.len()
    }

    #[inline]
    fn get(&self, n: usize) -> Question<'_> {
        let first = if n == 0 { 0 } else { self.asked[n - 1].1 };
        let (statement, end) = self.asked[n];
        let start = if first == 0 { 0 } else { self.ends[first - 1] };
        Question { statement, bytes: &self.bytes, start, ends: &self.ends[first..end] }
    }

    fn clear(&mut self) {
        self.asked.clear();
        self.bytes.clear();
        self.ends.clear();
    }
}

/// A statement that is asked: its number within the transaction, and its parameters' texts.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The statement.
    pub statement: usize,
    bytes: &'a [u8],
    /// Start of the first parameter; `ends` holds the end of each.
    start: usize,
    ends: &'a [usize],
}

impl<'a> Question<'a> {
    /// Returns the number of parameters.
    pub fn parameters(&self) -> usize {
        self.ends.len()
    }

    /// A parameter's text.
    #[inline]
    pub fn parameter(&self, n: usize) -> &'a [u8] {
        let start = if n == 0 { self.start } else { self.ends[n - 1] };
        &self.bytes[start..self.ends[n]]
    }
}

fn write(arg: Arg<'_>, out: &mut Vec<u8>) {
    let integer = |out: &mut Vec<u8>, v: u64| {
        let (mut digits, mut at, mut rest) = ([0u8; 20], 20, v);
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        out.extend_from_slice(&digits[at..]);
    };
    match arg {
        Arg::Int(v) => integer(out, v),
        Arg::Cents(v) => {
            if v < 0 {
                out.push(b'-');
            }
            let cents = v.unsigned_abs();
            integer(out, cents / 100);
            out.extend_from_slice(&[b'.', b'0' + (cents / 10 % 10) as u8, b'0' + (cents % 10) as u8]);
        }
        Arg::Text(text) => out.extend_from_slice(text),
        Arg::Ints(values) => {
            out.push(b'{');
            for (n, v) in values.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                integer(out, *v);
            }
            out.push(b'}');
        }
        Arg::Bool(yes) => out.push(if yes { b't' } else { b'f' }),
    }
}

/// Server response that contradicts the expected contents of the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unexpected(pub String);

/// The rows of several statements, in the order in which they were asked: one piece of memory for all.
#[derive(Debug, Default)]
struct AllRows {
    bytes: Vec<u8>,
    /// End of each value, row by row; the highest bit marks NULL.
    ends: Vec<u32>,
    /// Number of columns, and end of the values in `ends`, for each statement whose rows are complete.
    whole: Vec<(usize, usize)>,
    /// Columns of the rows that are not whole yet.
    columns: usize,
}

const NULL: u32 = 1 << 31;

impl AllRows {
    fn push<'a>(&mut self, values: impl ExactSizeIterator<Item = Option<&'a [u8]>>) {
        self.columns = values.len();
        for value in values {
            self.bytes.extend_from_slice(value.unwrap_or_default());
            let null = if value.is_none() { NULL } else { 0 };
            self.ends.push(self.bytes.len() as u32 | null);
        }
    }

    /// Empty, with its memory.
    fn cleared(mut self) -> AllRows {
        self.bytes.clear();
        self.ends.clear();
        self.whole.clear();
        self.columns = 0;
        self
    }

    fn end(&mut self) {
        self.whole.push((std::mem::take(&mut self.columns), self.ends.len()));
    }
}

/// The rows that a statement has returned.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    all: Arc<AllRows>,
    columns: usize,
    /// Its values in the ends of all.
    values: Range<usize>,
}

impl Rows {
    /// Returns the number of rows.
    pub fn count(&self) -> usize {
        self.values.len().checked_div(self.columns).unwrap_or(0)
    }

    /// A value; `None` is NULL, or that there is none.
    pub fn value(&self, row: usize, column: usize) -> Option<&[u8]> {
        if column >= self.columns || row >= self.count() {
            return None;
        }
        let n = self.values.start + row * self.columns + column;
        let end = self.all.ends[n];
        let start = if n == 0 { 0 } else { self.all.ends[n - 1] & !NULL };
        (end & NULL == 0).then(|| &self.all.bytes[start as usize..end as usize])
    }

    /// An integer of the first row.
    pub fn int(&self, column: usize) -> Result<u64, Unexpected> {
        self.int_of(0, column)
    }

    /// An integer of a row.
    pub fn int_of(&self, row: usize, column: usize) -> Result<u64, Unexpected> {
        let text = self.value(row, column).ok_or_else(|| Unexpected(format!("column {} has no value", column + 1)))?;
        let number = std::str::from_utf8(text).ok().and_then(|t| t.parse().ok());
        number.ok_or_else(|| Unexpected(format!("{} is no number from 0 on", String::from_utf8_lossy(text))))
    }

    /// An amount of the first row, in cents.
    pub fn cents(&self, column: usize) -> Result<i64, Unexpected> {
        let text = self.value(0, column).ok_or_else(|| Unexpected(format!("column {} has no value", column + 1)))?;
        cents(text).ok_or_else(|| Unexpected(format!("{} is no amount", String::from_utf8_lossy(text))))
    }

    /// A text of the first row.
    pub fn text(&self, column: usize) -> &[u8] {
        self.value(0, column).unwrap_or_default()
    }
}

/// A decimal number with at most two digits behind the point, times 100.
fn cents(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mut value, mut behind) = (0i64, None);
    for byte in digits {
        match (byte, behind) {
            (b'0'..=b'9', _) => {
                value = value.checked_mul(10)?.checked_add(i64::from(byte - b'0'))?;
                behind = behind.map(|n| n + 1);
            }
            (b'.', None) => behind = Some(0),
            _ => return None,
        }
    }
    let value = value.checked_mul([100, 10, 1].get(behind.unwrap_or(0)).copied()?)?;
    Some(if negative { -value } else { value })
}

/// Answers to the questions: the rows of the statements that return rows, in the order of the questions.
pub struct Answers {
    all: Arc<AllRows>,
    taken: usize,
}

impl Answers {
    /// Returns the rows of the next statement that returns rows.
    pub fn any(&mut self) -> Rows {
        let first = if self.taken == 0 { 0 } else { self.all.whole[self.taken - 1].1 };
        let Some((columns, end)) = self.all.whole.get(self.taken).copied() else { return Rows::default() };
        self.taken += 1;
        Rows { all: self.all.clone(), columns, values: first..end }
    }

    /// Returns the rows of the next statement that returns rows, and fails if there are none. `what` names what is
    /// looked for.
    pub fn some(&mut self, what: &str) -> Result<Rows, Unexpected> {
        let rows = self.any();
        if rows.count() == 0 { Err(Unexpected(format!("{what} is not there"))) } else { Ok(rows) }
    }
}

#[derive(Default)]
struct Mail {
    questions: Questions,
    /// Number of questions sent, counted from the first.
    sent: usize,
    rows: AllRows,
    /// Rows that were handed over. Their memory is reused when the transaction has finished with them.
    given: Vec<Arc<AllRows>>,
    /// All questions are answered.
    answered: bool,
    /// An order that is committed.
    order: Option<Order>,
    /// A delivery found a district without a new order.
    passed_over: bool,
}

impl Mail {
    /// The rows that have come; the next ones get memory that is there already.
    fn hand_over(&mut self) -> Arc<AllRows> {
        let free = self.given.iter().position(|rows| Arc::strong_count(rows) == 1);
        let next = free.and_then(|n| Arc::into_inner(self.given.swap_remove(n))).unwrap_or_default();
        let rows = Arc::new(std::mem::replace(&mut self.rows, next.cleared()));
        self.given.push(rows.clone());
        rows
    }

    /// Forgets everything but its memory.
    fn clear(&mut self) {
        self.questions.clear();
        self.rows = std::mem::take(&mut self.rows).cleared();
        (self.sent, self.answered, self.order, self.passed_over) = (0, false, None, false);
    }
}

/// An order whose commit the server has acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Its warehouse.
    pub warehouse: u64,
    /// Its district.
    pub district: u64,
    /// Its number there.
    pub number: u64,
}

/// See the module.
#[derive(Clone, Default)]
pub struct Exchange(Arc<Mutex<Mail>>);

impl Exchange {
    fn mail(&self) -> MutexGuard<'_, Mail> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    // ------------------------------------------------------------ the transaction's side

    /// Asks a statement, by its number within the transaction.
    pub fn ask(&self, statement: usize, args: &[Arg<'_>]) {
        self.mail().questions.push(statement, args);
    }

    /// Has sent what was asked, and waits for all of it to be answered.
    pub async fn answers(&self) -> Answers {
        poll_fn(|_| {
            let mut mail = self.mail();
            if !mail.answered {
                return Poll::Pending;
            }
            mail.answered = false;
            mail.questions.clear();
            mail.sent = 0;
            Poll::Ready(Answers { all: mail.hand_over(), taken: 0 })
        })
        .await
    }

    /// Notes an order, when its commit is acknowledged.
    pub fn acknowledged(&self, order: Order) {
        self.mail().order = Some(order);
    }

    /// Notes that a delivery has passed a district over.
    pub fn passed_over(&self) {
        self.mail().passed_over = true;
    }

    // ------------------------------------------------------------ the client's side

    /// Returns true if the transaction has passed over a district, and clears the mark.
    pub fn take_passed_over(&self) -> bool {
        std::mem::take(&mut self.mail().passed_over)
    }

    /// The order that the transaction has noted.
    pub fn take_order(&self) -> Option<Order> {
        self.mail().order.take()
    }

    /// Takes what is to be sent next, at most so many questions, and hands each to `send`; false: nothing is left.
    pub fn take(&self, most: usize, mut send: impl FnMut(Question<'_>)) -> bool {
        let mut mail = self.mail();
        let from = mail.sent;
        let end = mail.questions.len().min(from.saturating_add(most));
        mail.sent = end;
        (from..end).for_each(|n| send(mail.questions.get(n)));
        from < end
    }

    /// Shows what is left to be sent.
    pub fn look(&self, mut see: impl FnMut(Question<'_>)) {
        let mail = self.mail();
        (mail.sent..mail.questions.len()).for_each(|n| see(mail.questions.get(n)));
    }

    /// The last so many questions were not carried out: they are left to be sent again.
    pub fn take_back(&self, count: usize) {
        let mut mail = self.mail();
        mail.sent -= count.min(mail.sent);
    }

    /// Returns the number of questions left to send.
    pub fn left(&self) -> usize {
        let mail = self.mail();
        mail.questions.len() - mail.sent
    }

    /// A row arrives, of the statement whose rows are not whole yet.
    pub fn row<'a>(&self, values: impl ExactSizeIterator<Item = Option<&'a [u8]>>) {
        self.mail().rows.push(values);
    }

    /// Its rows are whole.
    pub fn end_of_rows(&self) {
        self.mail().rows.end();
    }

    /// All that was asked is answered.
    pub fn all_answered(&self) {
        self.mail().answered = true;
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.mail().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_written_as_sql_reads_them() {
        let ids = [1, 20, 300];
        let args = [
            Arg::Int(0),
            Arg::Int(u64::MAX),
            Arg::Cents(-1005),
            Arg::Cents(7),
            Arg::Text(b"BARBARBAR"),
            Arg::Ints(&ids),
            Arg::Bool(true),
        ];
        let mut all = Questions::default();
        all.push(2, &[Arg::Int(5)]);
        all.push(9, &[]);
        all.push(3, &args);
        assert_eq!((all.get(0).parameter(0), all.get(1).parameters()), (&b"5"[..], 0));
        let q = all.get(2);
        let texts: Vec<_> = (0..q.parameters()).map(|n| String::from_utf8_lossy(q.parameter(n)).into_owned()).collect();
        assert_eq!(texts, ["0", "18446744073709551615", "-10.05", "0.07", "BARBARBAR", "{1,20,300}", "t"]);
    }

    #[test]
    fn amounts_are_read() {
        for (text, value) in
            [("10.00", Some(1000)), ("-3", Some(-300)), ("0.5", Some(50)), ("1.234", None), ("x", None), ("", Some(0))]
        {
            assert_eq!(cents(text.as_bytes()), value, "{text}");
        }
    }

    #[test]
    fn rows_come_to_the_statements_that_asked() {
        let exchange = Exchange::default();
        let row = |values: &[Option<&[u8]>]| exchange.row(values.iter().copied());
        row(&[Some(b"1"), None]);
        row(&[Some(b"2"), Some(b"x")]);
        exchange.end_of_rows();
        exchange.end_of_rows();
        row(&[Some(b"")]);
        exchange.end_of_rows();
        exchange.all_answered();
        let mut future = Box::pin(exchange.answers());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let Poll::Ready(mut answers) = future.as_mut().poll(&mut context) else { panic!("it is answered") };
        let first = answers.any();
        assert_eq!((first.count(), first.int(0), first.value(0, 1)), (2, Ok(1), None));
        assert_eq!((first.int_of(1, 0), first.value(1, 1)), (Ok(2), Some(&b"x"[..])));
        assert!(answers.some("it").is_err());
        assert_eq!(answers.some("it").map(|r| r.text(0).len()), Ok(0));
        assert!(answers.some("it").is_err(), "there are no more");
        assert_eq!((first.count(), first.value(2, 0), first.value(0, 2)), (2, None, None));
    }
}
