//! What a text of SQL may do to the transaction that it is carried out in, as far as its words tell: decides what a
//! connection that is lost while the text is under way means.

/// Possible effect of an SQL text on its transaction. A text may hold several statements: the simple protocol takes
/// them in one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// True if the text may commit something. Index 0: it begins outside a transaction block; index 1: inside one.
    commits: [bool; 2],
    /// True if a transaction block is open after the text, indexed like `commits`.
    leaves_open: [bool; 2],
    /// It asks for a roll-back itself.
    rolls_back: bool,
    /// It commits what is open before it does anything else, also if it fails then.
    commits_first: bool,
    /// Its statements; 255 stands for more.
    statements: u8,
}

/// Rules that tell words from comments, literals and names in a product's SQL.
#[derive(Clone, Copy, Debug)]
pub struct Lexicon {
    /// A backslash escapes in all literals, and not only behind E.
    backslashes: bool,
    /// $tag$ quotes.
    dollars: bool,
    /// `#` begins a comment, `/*! */` holds SQL, a backtick quotes names, and comments do not nest.
    mysql: bool,
    /// DDL commits what is open.
    ddl_commits: bool,
}

impl Lexicon {
    /// PostgreSQL's.
    pub const POSTGRES: Lexicon = Lexicon { backslashes: false, dollars: true, mysql: false, ddl_commits: false };
    /// MySQL's and MariaDB's, in their default SQL mode.
    pub const MYSQL: Lexicon = Lexicon { backslashes: true, dollars: false, mysql: true, ddl_commits: true };
}

/// Kind of a statement.
#[derive(Clone, Copy)]
enum Kind {
    /// BEGIN, START TRANSACTION.
    Begin,
    /// BEGIN of MySQL: it commits what is open.
    BeginAnew,
    /// COMMIT, END; also PREPARE TRANSACTION and COMMIT PREPARED, whose answer decides a transaction's fate as well.
    Commit { chain: bool },
    /// ROLLBACK, ABORT.
    Rollback { chain: bool },
    /// ROLLBACK TO, RELEASE and the like: within the block.
    Within,
    /// It commits what is open, and itself.
    CommitsAll,
    /// Anything else: outside a block it commits itself.
    Other,
    /// It begins with a variable: only the run knows.
    Unknown,
}

impl Effect {
    /// A statement that commits itself where no block is open.
    pub const STATEMENT: Effect = Effect {
        commits: [true, false],
        leaves_open: [false, true],
        rolls_back: false,
        commits_first: false,
        statements: 1,
    };

    /// Reads a text of PostgreSQL's SQL.
    pub fn of(sql: &str) -> Effect {
        Effect::read(sql, &Lexicon::POSTGRES)
    }

    /// Reads a text: comments, literals, quoted names and dollar quotes are passed over, `;` ends a statement.
    pub fn read(sql: &str, lexicon: &Lexicon) -> Effect {
        let mut effect = Effect {
            commits: [false; 2],
            leaves_open: [false, true],
            rolls_back: false,
            commits_first: false,
            statements: 0,
        };
        for words in statements(sql, lexicon) {
            effect.follow(kind(&words, lexicon));
        }
        effect
    }

    fn follow(&mut self, kind: Kind) {
        self.statements = self.statements.saturating_add(1);
        self.commits_first |= matches!(kind, Kind::CommitsAll | Kind::BeginAnew);
        self.rolls_back |= matches!(kind, Kind::Rollback { .. } | Kind::Within | Kind::Unknown);
        for began in 0..2 {
            let open = &mut self.leaves_open[began];
            let commits = &mut self.commits[began];
            match kind {
                Kind::Begin => *open = true,
                Kind::BeginAnew => {
                    *commits |= *open;
                    *open = true;
                }
                Kind::Commit { chain } => {
                    *commits = true;
                    *open = chain;
                }
                Kind::Rollback { chain } => *open &= chain,
                Kind::Within => {}
                Kind::CommitsAll => {
                    *commits = true;
                    *open = false;
                }
                Kind::Other => *commits |= !*open,
                Kind::Unknown => {
                    *commits = true;
                    // Outside a block more can be committed: what cannot be known is taken for that.
                    *open = false;
                }
            }
        }
    }

    /// Returns true if executing the text may commit something.
    #[inline]
    pub fn may_commit(self, in_block: bool) -> bool {
        self.commits[usize::from(in_block)]
    }

    /// Returns true if a transaction block is open after the text.
    #[inline]
    pub fn leaves_open(self, in_block: bool) -> bool {
        self.leaves_open[usize::from(in_block)]
    }

    /// Returns true if the text itself asks for an answer of ROLLBACK. As the answer to a COMMIT, ROLLBACK means
    /// failure.
    #[inline]
    pub fn rolls_back(self) -> bool {
        self.rolls_back
    }

    /// Returns true if the text commits what is open before it does anything else, also if it fails then.
    #[inline]
    pub fn commits_first(self) -> bool {
        self.commits_first
    }

    /// Returns true if this number of results answers the whole text.
    #[inline]
    pub fn is_answered_by(self, results: u32) -> bool {
        self.statements < u8::MAX && results >= u32::from(self.statements)
    }
}

fn kind(words: &[String], lexicon: &Lexicon) -> Kind {
    let word = |n: usize| words.get(n).map_or("", String::as_str);
    // COMMIT [WORK | TRANSACTION] AND [NO] CHAIN
    let chain = words.last().is_some_and(|w| w == "CHAIN") && !words.iter().any(|w| w == "NO");
    if lexicon.ddl_commits {
        match (word(0), word(1)) {
            ("BEGIN", _) | ("START", "TRANSACTION") => return Kind::BeginAnew,
            ("START", _) => return Kind::Other,
            ("XA" | "EXECUTE", _) => return Kind::Unknown,
            (first, second) if commits_all(first, second, word(2)) => return Kind::CommitsAll,
            _ => {}
        }
    }
    match (word(0), word(1)) {
        ("BEGIN" | "START", _) => Kind::Begin,
        ("COMMIT" | "END", _) | ("PREPARE", "TRANSACTION") => Kind::Commit { chain },
        ("ROLLBACK", "PREPARED") => Kind::Other,
        ("ROLLBACK", _) if words.iter().any(|w| w == "TO") => Kind::Within,
        ("ROLLBACK" | "ABORT", _) => Kind::Rollback { chain },
        (":", _) => Kind::Unknown,
        _ => Kind::Other,
    }
}

/// MySQL's implicit commits (its manual, "Statements That Cause an Implicit Commit"); those that only may are among them.
fn commits_all(first: &str, second: &str, third: &str) -> bool {
    match first {
        "ALTER" | "RENAME" | "TRUNCATE" | "GRANT" | "REVOKE" | "ANALYZE" | "OPTIMIZE" | "REPAIR" | "LOCK"
        | "UNLOCK" | "INSTALL" | "UNINSTALL" | "FLUSH" | "RESET" | "CACHE" | "CHECK" | "CALL" | "CHANGE" => true,
        "CREATE" | "DROP" => second != "TEMPORARY",
        "SET" => {
            matches!(second, "AUTOCOMMIT" | "PASSWORD")
                || (matches!(second, "SESSION" | "LOCAL" | "GLOBAL") && third == "AUTOCOMMIT")
        }
        "LOAD" => second == "INDEX",
        _ => false,
    }
}

/// The first words of each statement, in capitals; a variable is ":".
fn statements(sql: &str, lexicon: &Lexicon) -> Vec<Vec<String>> {
    /// COMMIT WORK AND NO CHAIN has as many.
    const WORDS: usize = 5;
    let bytes = sql.as_bytes();
    let (mut all, mut words, mut empty, mut at) = (Vec::new(), Vec::new(), true, 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        match rest[0] {
            b if b.is_ascii_whitespace() => at += 1,
            b'-' if rest.starts_with(b"--") => at += line_comment(rest),
            b'#' if lexicon.mysql => at += line_comment(rest),
            // What stands in such a comment is carried out.
            b'/' if lexicon.mysql && (rest.starts_with(b"/*!") || rest.starts_with(b"/*M!")) => {
                let mark = if rest[2] == b'!' { 3 } else { 4 };
                at += mark + rest[mark..].iter().take_while(|b| b.is_ascii_digit()).count();
            }
            b'*' if lexicon.mysql && rest.starts_with(b"*/") => at += 2,
            b'/' if rest.starts_with(b"/*") => at += block_comment(rest, !lexicon.mysql),
            b';' => {
                if !std::mem::replace(&mut empty, true) {
                    all.push(std::mem::take(&mut words));
                }
                at += 1;
            }
            b if b.is_ascii_alphabetic() || b == b'_' || b >= 0x80 => {
                let end = rest.iter().position(|b| !is_word(*b)).unwrap_or(rest.len());
                // E'it\'s': here, and here only, a backslash protects a quote.
                if !lexicon.backslashes && end == 1 && matches!(b, b'e' | b'E') && rest.get(1) == Some(&b'\'') {
                    at += 1 + literal(&rest[1..], true);
                } else {
                    if words.len() < WORDS {
                        words.push(sql[at..at + end].to_ascii_uppercase());
                    }
                    at += end;
                }
                empty = false;
            }
            b => {
                if b == b':' && words.is_empty() {
                    words.push(":".into());
                }
                at += match b {
                    b'\'' | b'"' => literal(rest, lexicon.backslashes),
                    b'`' if lexicon.mysql => literal(rest, false),
                    b'$' if lexicon.dollars => dollar_quote(rest),
                    _ => 1,
                };
                empty = false;
            }
        }
    }
    if !empty {
        all.push(words);
    }
    all
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80
}

fn line_comment(rest: &[u8]) -> usize {
    rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len())
}

/// Returns the length of a comment. PostgreSQL's nest.
fn block_comment(rest: &[u8], nest: bool) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") && (nest || depth == 0) {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Returns the length of a quoted literal or name. A doubled quote stands for one: a backslash behind it still escapes.
fn literal(rest: &[u8], escapes: bool) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' if escapes => at += 2,
            b if b == rest[0] && rest.get(at + 1) == Some(&b) => at += 2,
            b if b == rest[0] => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Returns the length of `$tag$ … $tag$`. A `$1` or a lone `$` counts as one byte.
fn dollar_quote(rest: &[u8]) -> usize {
    let Some(end) = rest[1..].iter().position(|b| !is_word(*b) || *b == b'$').map(|n| n + 1) else { return 1 };
    if rest[end] != b'$' || rest[1].is_ascii_digit() {
        return 1;
    }
    let tag = &rest[..=end];
    let behind = &rest[tag.len()..];
    behind.windows(tag.len()).position(|w| w == tag).map_or(rest.len(), |n| n + 2 * tag.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// May commit outside and inside a block; open behind it, likewise.
    fn effects(sql: &str) -> ([bool; 2], [bool; 2]) {
        let e = Effect::of(sql);
        ([e.may_commit(false), e.may_commit(true)], [e.leaves_open(false), e.leaves_open(true)])
    }

    #[test]
    fn one_statement() {
        for (sql, commits, open) in [
            ("UPDATE t SET a = 1", [true, false], [false, true]),
            (r"SELECT E'a''\''; COMMIT", [true, true], [false, false]),
            (r"SELECT 'a''\'; COMMIT", [true, true], [false, false]),
            (r"SELECT 'a\''; COMMIT'", [true, false], [false, true]),
            ("begin isolation level serializable;", [false, false], [true, true]),
            ("START TRANSACTION", [false, false], [true, true]),
            ("END", [true, true], [false, false]),
            ("COMMIT WORK AND CHAIN", [true, true], [true, true]),
            ("COMMIT AND NO CHAIN", [true, true], [false, false]),
            ("PREPARE TRANSACTION 'x'", [true, true], [false, false]),
            ("PREPARE p AS SELECT 1", [true, false], [false, true]),
            ("ROLLBACK", [false, false], [false, false]),
            ("ABORT", [false, false], [false, false]),
            ("ROLLBACK AND CHAIN", [false, false], [false, true]),
            ("ROLLBACK TO SAVEPOINT s", [false, false], [false, true]),
            ("ROLLBACK PREPARED 'x'", [true, false], [false, true]),
            ("/* why */ COMMIT", [true, true], [false, false]),
            ("-- COMMIT\n/* a /* nested */ one */ END -- so\n", [true, true], [false, false]),
            (":statement", [true, true], [false, false]),
            ("", [false, false], [false, true]),
        ] {
            assert_eq!(effects(sql), (commits, open), "{sql}");
        }
    }

    #[test]
    fn mysql_has_its_own_quotes_and_commits() {
        for (sql, commits, open) in [
            ("UPDATE t SET a = 'it\\'s; COMMIT'", [true, false], [false, true]),
            ("UPDATE `a;COMMIT` SET a = 1 # ; COMMIT", [true, false], [false, true]),
            ("CREATE TABLE t (a INT)", [true, true], [false, false]),
            ("DROP TEMPORARY TABLE t", [true, false], [false, true]),
            ("/*!40101 COMMIT */", [true, true], [false, false]),
            ("/* a /* b */ COMMIT", [true, true], [false, false]),
            ("SET autocommit = 1", [true, true], [false, false]),
            ("SET @@session.autocommit = 1", [true, true], [false, false]),
            ("SET SESSION TRANSACTION READ ONLY", [true, false], [false, true]),
            ("BEGIN", [false, true], [true, true]),
            ("START TRANSACTION READ ONLY", [false, true], [true, true]),
            ("START SLAVE", [true, false], [false, true]),
            ("XA COMMIT 'x'", [true, true], [false, false]),
            ("/*M!100100 COMMIT */", [true, true], [false, false]),
            ("SELECT $$; COMMIT; $$", [true, true], [false, false]),
        ] {
            let e = Effect::read(sql, &Lexicon::MYSQL);
            let found = ([e.may_commit(false), e.may_commit(true)], [e.leaves_open(false), e.leaves_open(true)]);
            assert_eq!(found, (commits, open), "{sql}");
        }
    }

    #[test]
    fn several_statements() {
        assert_eq!(effects("BEGIN; UPDATE t SET a = 1; END"), ([true, true], [false, false]));
        assert_eq!(effects("BEGIN; UPDATE t SET a = 1; ROLLBACK"), ([false, false], [false, false]));
        assert_eq!(effects("UPDATE t SET a = 1; BEGIN"), ([true, false], [true, true]));
        assert_eq!(effects("BEGIN; SELECT 1"), ([false, false], [true, true]));
        assert!(Effect::of("SELECT 1; SELECT 2;;").is_answered_by(2));
        assert!(!Effect::of("SELECT 1; SELECT 2").is_answered_by(1));
    }

    #[test]
    fn what_only_looks_like_a_commit() {
        for sql in [
            "SELECT ';COMMIT'",
            "SELECT E'it\\'s;COMMIT'",
            "SELECT 'it''s;COMMIT'",
            "SELECT \"a;COMMIT\"",
            "SELECT $$;COMMIT;$$",
            "SELECT $x$;$$COMMIT;$x$",
            "SELECT $1 -- ; COMMIT",
            "SELECT 1 /* ; COMMIT */",
            "UPDATE t SET a = (SELECT 1) -- END",
        ] {
            assert_eq!(effects(sql), ([true, false], [false, true]), "{sql}");
        }
    }

    #[test]
    fn nothing_breaks_it() {
        for sql in ["'", "\"", "$", "$a", "$a$", "/*", "--", "E'\\", "é;$é$;", ":", "e", "\0;\u{1F600}"] {
            let _ = Effect::of(sql);
        }
    }
}
