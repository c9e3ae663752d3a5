//! Expressions from tokens, by precedence climbing. Precedences are those of the pgbench documentation.

use crate::ast::{Expr, ExprKind};
use crate::error::Fault;
use crate::functions::Function;
use crate::lexer::{Token, TokenKind, tokenize};
use crate::value::Scalar;

/// Deeper nesting than this is refused, so that no script can exhaust the stack.
const MAX_DEPTH: usize = 200;

/// A chain of operators is as deep as it is long.
const MAX_TOKENS: usize = 2_000;

/// Words that are no names of functions.
const KEYWORDS: [&str; 10] = ["and", "else", "end", "is", "isnull", "not", "notnull", "or", "then", "when"];

/// Binding strengths, weakest first. Comparisons and IS do not associate.
mod power {
    pub const OR: u8 = 1;
    pub const AND: u8 = 2;
    pub const NOT: u8 = 3;
    pub const IS: u8 = 4;
    pub const COMPARISON: u8 = 5;
    pub const BITWISE: u8 = 6;
    pub const ADDITIVE: u8 = 7;
    pub const MULTIPLICATIVE: u8 = 8;
}

/// Parses all of `text`, which begins at byte `base` of the script.
pub fn parse_expression(text: &str, base: usize) -> Result<Expr, Fault> {
    let tokens = tokenize(text, base)?;
    if tokens.len() > MAX_TOKENS {
        return Err(Fault::new(base, "the expression is too long").hint("Cut it into several \\set commands."));
    }
    let mut parser = Parser { text, base, tokens: &tokens, next: 0, end: base + text.trim_end().len(), depth: 0 };
    let expr = parser.expression(0)?;
    match parser.peek() {
        None => Ok(expr),
        Some(t) => {
            Err(syntax(t.offset, t.last(), "syntax error: an operator or the end of the line was expected here"))
        }
    }
}

/// A mistake that pgbench calls a syntax error; its caret points at the last byte of what it did not expect.
fn syntax(offset: usize, last: usize, message: impl Into<String>) -> Fault {
    Fault::new(offset, message).classic("syntax error").caret(last)
}

struct Parser<'a> {
    text: &'a str,
    base: usize,
    tokens: &'a [Token],
    next: usize,
    end: usize,
    depth: usize,
}

fn call(offset: usize, f: Function, args: Vec<Expr>) -> Expr {
    Expr { offset, kind: ExprKind::Call(f, args) }
}

fn constant(offset: usize, v: Scalar) -> Expr {
    Expr { offset, kind: ExprKind::Const(v) }
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.next)
    }

    fn offset(&self) -> usize {
        self.peek().map_or(self.end, |t| t.offset)
    }

    /// The text at a place, in the case that it was written in.
    fn written(&self, offset: usize, length: usize) -> &'a str {
        &self.text[offset - self.base..offset - self.base + length]
    }

    /// Returns a fault for something unexpected at the current position.
    fn unexpected(&self, message: impl Into<String>) -> Fault {
        syntax(self.offset(), self.peek().map_or(self.end, Token::last), message)
    }

    fn take_op(&mut self, op: &str) -> bool {
        let hit = matches!(self.peek(), Some(Token { kind: TokenKind::Op(o), .. }) if *o == op);
        self.next += usize::from(hit);
        hit
    }

    fn take_word(&mut self, word: &str) -> bool {
        let hit = matches!(self.peek(), Some(Token { kind: TokenKind::Word(w), .. }) if w == word);
        self.next += usize::from(hit);
        hit
    }

    fn expect_op(&mut self, op: &str) -> Result<(), Fault> {
        if self.take_op(op) { Ok(()) } else { Err(self.unexpected(format!("\"{op}\" was expected here"))) }
    }

    fn expect_word(&mut self, word: &str) -> Result<(), Fault> {
        if self.take_word(word) {
            Ok(())
        } else {
            Err(self.unexpected(format!("{} was expected here", word.to_uppercase())))
        }
    }

    /// An expression whose operators all bind stronger than `min`.
    fn expression(&mut self, min: u8) -> Result<Expr, Fault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Fault::new(self.offset(), "the expression is nested too deeply"));
        }
        let mut left = self.prefix()?;
        // What a non-associative operator has just bound; the same strength may not follow.
        let mut closed = u8::MAX;
        while let Some(strength) = self.infix_strength() {
            if strength <= min {
                break;
            }
            if strength == closed {
                return Err(self
                    .unexpected("syntax error: comparisons cannot be chained")
                    .hint("Put parentheses around one of the two."));
            }
            left = self.infix(left, strength)?;
            closed = if strength == power::COMPARISON { strength } else { u8::MAX };
        }
        self.depth -= 1;
        Ok(left)
    }

    fn infix_strength(&self) -> Option<u8> {
        let token = self.peek()?;
        let strength = match &token.kind {
            TokenKind::Op(op) => match *op {
                "+" | "-" => power::ADDITIVE,
                "*" | "/" | "%" => power::MULTIPLICATIVE,
                "=" | "<" | ">" | "<=" | ">=" | "<>" | "!=" => power::COMPARISON,
                "|" | "#" | "&" | "<<" | ">>" => power::BITWISE,
                _ => return None,
            },
            TokenKind::Word(w) => match w.as_str() {
                "or" => power::OR,
                "and" => power::AND,
                "is" | "isnull" | "notnull" => power::IS,
                _ => return None,
            },
            _ => return None,
        };
        Some(strength)
    }

    fn infix(&mut self, left: Expr, strength: u8) -> Result<Expr, Fault> {
        let offset = left.offset;
        let token = &self.tokens[self.next];
        self.next += 1;
        let op = match &token.kind {
            TokenKind::Op(op) => *op,
            TokenKind::Word(w) => match w.as_str() {
                "or" => {
                    let right = self.expression(strength)?;
                    return Ok(Expr { offset, kind: ExprKind::Or(Box::new(left), Box::new(right)) });
                }
                "and" => {
                    let right = self.expression(strength)?;
                    return Ok(Expr { offset, kind: ExprKind::And(Box::new(left), Box::new(right)) });
                }
                "isnull" => return Ok(is(left, Scalar::Null, false)),
                "notnull" => return Ok(is(left, Scalar::Null, true)),
                _ => return self.is_what(left),
            },
            _ => unreachable!("infix_strength admits operators and words only"),
        };
        let right = self.expression(strength)?;
        let (f, args) = match op {
            "+" => (Function::Add, vec![left, right]),
            "-" => (Function::Subtract, vec![left, right]),
            "*" => (Function::Multiply, vec![left, right]),
            "/" => (Function::Divide, vec![left, right]),
            "%" => (Function::Mod, vec![left, right]),
            "=" => (Function::Equal, vec![left, right]),
            "<>" | "!=" => (Function::NotEqual, vec![left, right]),
            "<" => (Function::Less, vec![left, right]),
            "<=" => (Function::LessEqual, vec![left, right]),
            ">" => (Function::Less, vec![right, left]),
            ">=" => (Function::LessEqual, vec![right, left]),
            "|" => (Function::BitOr, vec![left, right]),
            "&" => (Function::BitAnd, vec![left, right]),
            "#" => (Function::BitXor, vec![left, right]),
            "<<" => (Function::ShiftLeft, vec![left, right]),
            _ => (Function::ShiftRight, vec![left, right]),
        };
        Ok(call(offset, f, args))
    }

    fn is_what(&mut self, left: Expr) -> Result<Expr, Fault> {
        let negated = self.take_word("not");
        for (word, value) in [("null", Scalar::Null), ("true", Scalar::Bool(true)), ("false", Scalar::Bool(false))] {
            if self.take_word(word) {
                return Ok(is(left, value, negated));
            }
        }
        Err(self.unexpected("NULL, TRUE or FALSE was expected here"))
    }

    fn prefix(&mut self) -> Result<Expr, Fault> {
        let offset = self.offset();
        if self.take_op("-") {
            if let Some(Token { kind: TokenKind::Int(i), .. }) = self.peek() {
                if *i == 1 << 63 {
                    self.next += 1;
                    return Ok(constant(offset, Scalar::Int(i64::MIN)));
                }
            }
            let operand = self.unary_operand()?;
            return Ok(call(offset, Function::Subtract, vec![constant(offset, Scalar::Int(0)), operand]));
        }
        if self.take_op("+") {
            return self.unary_operand();
        }
        if self.take_op("~") {
            // Binds as the binary bit operators do, weaker than arithmetic: pgbench's grammar has it there.
            let operand = self.expression(power::BITWISE)?;
            return Ok(call(offset, Function::BitXor, vec![constant(offset, Scalar::Int(-1)), operand]));
        }
        if self.take_word("not") {
            let operand = self.expression(power::NOT - 1)?;
            return Ok(call(offset, Function::Not, vec![operand]));
        }
        self.primary()
    }

    fn unary_operand(&mut self) -> Result<Expr, Fault> {
        self.expression(power::MULTIPLICATIVE)
    }

    fn primary(&mut self) -> Result<Expr, Fault> {
        let Some(token) = self.peek() else {
            return Err(syntax(self.end, self.end, "an expression was expected here"));
        };
        let offset = token.offset;
        self.next += 1;
        match &token.kind {
            TokenKind::Int(i) => match i64::try_from(*i) {
                Ok(i) => Ok(constant(offset, Scalar::Int(i))),
                Err(_) => Err(Fault::new(offset, format!("bigint constant overflow: {i}"))
                    .classic("syntax error")
                    .caret(token.last())),
            },
            TokenKind::Double(d) => Ok(constant(offset, Scalar::Double(*d))),
            TokenKind::Variable(name) => Ok(Expr { offset, kind: ExprKind::Var(name.clone()) }),
            TokenKind::Op("(") => {
                let inner = self.expression(0)?;
                self.expect_op(")")?;
                Ok(inner)
            }
            TokenKind::Op(op) => {
                Err(syntax(offset, token.last(), format!("an expression was expected here, not \"{op}\"")))
            }
            TokenKind::Word(word) => match word.as_str() {
                "null" => Ok(constant(offset, Scalar::Null)),
                "true" => Ok(constant(offset, Scalar::Bool(true))),
                "false" => Ok(constant(offset, Scalar::Bool(false))),
                "case" => self.case(offset),
                _ => self.function(offset, word),
            },
        }
    }

    fn case(&mut self, offset: usize) -> Result<Expr, Fault> {
        let mut branches = Vec::new();
        self.expect_word("when")?;
        loop {
            let condition = self.expression(0)?;
            self.expect_word("then")?;
            branches.push((condition, self.expression(0)?));
            if !self.take_word("when") {
                break;
            }
        }
        let otherwise = if self.take_word("else") { self.expression(0)? } else { constant(offset, Scalar::Null) };
        self.expect_word("end")?;
        Ok(Expr { offset, kind: ExprKind::Case { branches, otherwise: Box::new(otherwise) } })
    }

    fn function(&mut self, offset: usize, name: &str) -> Result<Expr, Fault> {
        if KEYWORDS.contains(&name) {
            let message = format!("an expression was expected here, not {}", name.to_uppercase());
            return Err(syntax(offset, offset + name.len() - 1, message));
        }
        let Some(f) = Function::by_name(name) else {
            return Err(Fault::new(offset, format!("unexpected function name \"{name}\""))
                .classic(format!("unexpected function name ({})", self.written(offset, name.len())))
                .caret(offset + name.len() - 1)
                .hint(format!("The functions are: {}.", Function::names().join(", "))));
        };
        self.expect_op("(")?;
        let mut args = Vec::new();
        if !self.take_op(")") {
            loop {
                args.push(self.expression(0)?);
                if self.take_op(")") {
                    break;
                }
                if !self.take_op(",") {
                    return Err(self.unexpected("\",\" or \")\" was expected here"));
                }
            }
        }
        let closing = self.tokens[self.next - 1].offset;
        f.check_arguments(args.len(), name).map_err(|(ours, classic)| {
            let written = self.written(offset, name.len());
            Fault::new(offset, ours).classic(format!("{classic} ({written})")).caret(closing)
        })?;
        // The seed of the hash functions and of permute defaults to a variable.
        if f.defaults_to_seed(args.len()) {
            args.push(Expr { offset, kind: ExprKind::Var("default_seed".into()) });
        }
        Ok(call(offset, f, args))
    }
}

fn is(left: Expr, value: Scalar, negated: bool) -> Expr {
    let offset = left.offset;
    let test = call(offset, Function::Is, vec![left, constant(offset, value)]);
    if negated { call(offset, Function::Not, vec![test]) } else { test }
}
