//! Shell commands of scripts: `\shell` and `\setshell`. They block their worker, as they do in pgbench.

use pgdyno_script::EvalError;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Bytes of a result that are looked at.
const MAX_LINE: u64 = 4096;

/// Runs `command` by the shell; messages call it `name`. With `read`, its standard output must begin with an integer, which is returned.
pub fn run(name: &str, command: &str, read: bool) -> Result<i64, EvalError> {
    let failed = |what: &str| EvalError::Execution(format!("{name}: {what}"));
    let mut shell = Command::new("/bin/sh");
    shell.arg0("sh").arg("-c").arg(command);
    if !read {
        let status = shell.status().map_err(|_| failed("could not launch shell command"))?;
        return if status.success() { Ok(0) } else { Err(failed("could not launch shell command")) };
    }
    let mut child = shell
        .stdin(Stdio::inherit())
        .stderr(Stdio::inherit())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|_| failed("could not launch shell command"))?;
    // One line; whoever has more to say finds the pipe closed.
    let mut line = Vec::new();
    if let Some(out) = child.stdout.take() {
        let _ = BufReader::new(out.take(MAX_LINE)).read_until(b'\n', &mut line);
    }
    let _ = child.wait();
    let line = String::from_utf8_lossy(&line);
    if line.is_empty() {
        return Err(failed("could not read result of shell command"));
    }
    match line.trim().parse::<i64>() {
        // C's int, as in pgbench.
        Ok(value) => Ok(i64::from(value as i32)),
        Err(_) => Err(failed(&format!("shell command must return an integer (not \"{line}\")"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_failures_are_told() {
        assert_eq!(run("x", "echo 42; echo 43", true), Ok(42));
        assert_eq!(run("x", "echo ' -7 '", true), Ok(-7));
        assert_eq!(run("x", "true", false), Ok(0));
        let text = |r: Result<i64, EvalError>| r.unwrap_err().to_string();
        assert_eq!(text(run("x", "false", false)), "x: could not launch shell command");
        assert_eq!(text(run("x", "echo one", true)), "x: shell command must return an integer (not \"one\n\")");
        // The rest of an endless output is not waited for.
        assert_eq!(run("x", "yes 1", true), Ok(1));
        assert_eq!(run("x", "echo 99999999999", true), Ok(1_215_752_191));
        assert_eq!(text(run("x", "true", true)), "x: could not read result of shell command");
    }
}
