//! Two products in one run: each connection speaks the protocol of its own server. What is chosen is known for each
//! connection only, so a run of one product does not come this way.

use crate::conversation::{Attempt, Cancel, Conversation, Dialect, Given, Sending, Statement, Target};
use crate::endpoint::Endpoint;
use crate::error::ProtocolError;
use crate::event::{Event, Fate, TransactionStatus};
use crate::row::DataRow;
use std::marker::PhantomData;
use std::sync::Arc;

/// Servers of two products.
pub struct Either<A, B>(PhantomData<(A, B)>);

/// One of two.
pub enum OneOf<A, B> {
    /// The first product's.
    First(A),
    /// The second product's.
    Second(B),
}

/// Carries out an expression on whichever of the two is there.
macro_rules! on {
    ($self:expr, $x:ident => $e:expr) => {
        match $self {
            OneOf::First($x) => $e,
            OneOf::Second($x) => $e,
        }
    };
}

impl<A: Dialect, B: Dialect> Dialect for Either<A, B> {
    type Config = OneOf<Arc<A::Config>, Arc<B::Config>>;
    type Conversation<L: Copy + Send + 'static> = OneOf<A::Conversation<L>, B::Conversation<L>>;
    type Cancel = OneOf<A::Cancel, B::Cancel>;
    const PIPELINES: bool = A::PIPELINES && B::PIPELINES;
}

impl<A: Target, B: Target> Target for OneOf<Arc<A>, Arc<B>> {
    fn endpoint(&self) -> &Endpoint {
        on!(self, x => x.endpoint())
    }

    fn attempts(&self) -> &'static [Attempt] {
        on!(self, x => x.attempts())
    }

    fn wants_writes(&self) -> bool {
        on!(self, x => x.wants_writes())
    }
}

impl<A: Default, B> Default for OneOf<A, B> {
    fn default() -> Self {
        OneOf::First(A::default())
    }
}

impl<L: Copy, A: Conversation<L>, B: Conversation<L>> Conversation<L> for OneOf<A, B> {
    type Config = OneOf<Arc<A::Config>, Arc<B::Config>>;

    fn start(config: Arc<Self::Config>, attempt: Attempt, out: &mut Vec<u8>) -> Result<Self, ProtocolError> {
        Ok(match &*config {
            OneOf::First(own) => OneOf::First(A::start(own.clone(), attempt, out)?),
            OneOf::Second(own) => OneOf::Second(B::start(own.clone(), attempt, out)?),
        })
    }

    fn read_notices(&mut self, read: bool) {
        on!(self, x => x.read_notices(read));
    }

    #[inline]
    fn is_open(&self) -> bool {
        on!(self, x => x.is_open())
    }

    #[inline]
    fn is_idle(&self) -> bool {
        on!(self, x => x.is_idle())
    }

    #[inline]
    fn is_plain(&self) -> bool {
        on!(self, x => x.is_plain())
    }

    #[inline]
    fn status(&self) -> TransactionStatus {
        on!(self, x => x.status())
    }

    #[inline]
    fn row(&self) -> Result<DataRow<'_>, ProtocolError> {
        on!(self, x => x.row())
    }

    #[inline]
    fn statement(
        &mut self,
        s: &Statement<'_>,
        sending: &Sending<L>,
        out: &mut Vec<u8>,
        whole: impl FnOnce(&mut Vec<u8>),
        value: impl FnMut(usize, &mut Vec<u8>) -> Given,
    ) {
        on!(self, x => x.statement(s, sending, out, whole, value));
    }

    fn prepare(&mut self, s: &Statement<'_>, label: L, out: &mut Vec<u8>) {
        on!(self, x => x.prepare(s, label, out));
    }

    fn sync(&mut self, label: L, out: &mut Vec<u8>) {
        on!(self, x => x.sync(label, out));
    }

    fn command(&mut self, label: L, sql: &str, out: &mut Vec<u8>) {
        on!(self, x => x.command(label, sql, out));
    }

    fn goodbye(&mut self, out: &mut Vec<u8>) {
        on!(self, x => x.goodbye(out));
    }

    fn data(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        on!(self, x => x.data(out, write));
    }

    fn end_data(&mut self, out: &mut Vec<u8>) {
        on!(self, x => x.end_data(out));
    }

    fn refuse_data(&mut self, reason: &str, out: &mut Vec<u8>) -> bool {
        on!(self, x => x.refuse_data(reason, out))
    }

    #[inline]
    fn mark_sent(&mut self) {
        on!(self, x => x.mark_sent());
    }

    #[inline]
    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> Result<(), ProtocolError> {
        on!(self, x => x.seal(plain, wire))
    }

    #[inline]
    fn open<'b>(
        &mut self,
        wire: &'b [u8],
        plain: &'b mut Vec<u8>,
        reply: &mut Vec<u8>,
    ) -> Result<&'b [u8], ProtocolError> {
        on!(self, x => x.open(wire, plain, reply))
    }

    #[inline]
    fn next(&mut self, input: &mut &[u8], reply: &mut Vec<u8>) -> Result<Option<Event<L>>, ProtocolError> {
        on!(self, x => x.next(input, reply))
    }

    #[inline]
    fn forget_commits(&mut self) {
        on!(self, x => x.forget_commits());
    }

    fn fate(&self) -> Fate {
        on!(self, x => x.fate())
    }
}

impl<A: Cancel, B: Cancel> Cancel for OneOf<A, B> {
    type Config = OneOf<Arc<A::Config>, Arc<B::Config>>;

    fn start(
        config: Arc<Self::Config>,
        encrypted: bool,
        process: u32,
        secret: Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(Self, bool), ProtocolError> {
        Ok(match &*config {
            OneOf::First(own) => {
                let (cancel, done) = A::start(own.clone(), encrypted, process, secret, out)?;
                (OneOf::First(cancel), done)
            }
            OneOf::Second(own) => {
                let (cancel, done) = B::start(own.clone(), encrypted, process, secret, out)?;
                (OneOf::Second(cancel), done)
            }
        })
    }

    fn feed(&mut self, wire: &[u8], out: &mut Vec<u8>) -> Result<bool, ProtocolError> {
        on!(self, x => x.feed(wire, out))
    }
}
