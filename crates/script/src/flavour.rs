//! Whose SQL a script has.

/// Product whose SQL the statements are in: what quotes, and what a comment is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flavour {
    /// PostgreSQL.
    #[default]
    Postgres,
    /// MySQL and MariaDB in their default SQL mode.
    MySql,
}
