//! Shell commands of scripts: `\shell` and `\setshell`. They block their worker, as they do in pgbench.

use pgdyno_script::EvalError;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Runs `command` by the shell. With `read`, its standard output must begin with an integer, which is returned.
pub fn run(command: &str, read: bool) -> Result<i64, EvalError> {
    let name = command.split(' ').next().unwrap_or("");
    let failed = |what: &str| EvalError::Execution(format!("{name}: {what}"));
    let mut shell = Command::new("/bin/sh");
    shell.arg0("sh").arg("-c").arg(command);
    if !read {
        let status = shell.status().map_err(|_| failed("could not launch shell command"))?;
        return if status.success() { Ok(0) } else { Err(failed("could not launch shell command")) };
    }
    let output = shell
        .stdin(Stdio::inherit())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|_| failed("could not launch shell command"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let Some(line) = text.lines().next() else { return Err(failed("could not read result of shell command")) };
    // As C's strtol, but for the overflow.
    line.trim().parse::<i64>().map_err(|_| failed(&format!("shell command must return an integer (not \"{line}\")")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_failures_are_told() {
        assert_eq!(run("echo 42; echo 43", true), Ok(42));
        assert_eq!(run("echo ' -7 '", true), Ok(-7));
        assert_eq!(run("true", false), Ok(0));
        let text = |r: Result<i64, EvalError>| r.unwrap_err().to_string();
        assert_eq!(text(run("false", false)), "false: could not launch shell command");
        assert_eq!(text(run("echo one", true)), "echo: shell command must return an integer (not \"one\")");
        assert_eq!(text(run("true", true)), "true: could not read result of shell command");
    }
}
