//! MySQL behind the traits of all protocols.

use crate::cancel::Cancel;
use crate::config::Config;
use crate::conversation::Conversation;
use pgdyno_protocol::Dialect;

/// MySQL and MariaDB.
pub struct MySql;

impl Dialect for MySql {
    type Config = Config;
    type Conversation<L: Copy + Send + 'static> = Conversation<L>;
    type Cancel = Cancel;
    const PIPELINES: bool = false;
}
