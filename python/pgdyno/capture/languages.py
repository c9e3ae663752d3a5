"""Words of PostgreSQL's messages in the languages that it speaks, as its message catalogues have them."""

from __future__ import annotations

import re

#: "statement: ...", of log_statement and log_min_duration_statement.
_STATEMENT = (
    "statement", "Anweisung", "sentencia", "instruction", "istruzione", "文", "გამოსახულება", "ოპერატორი", "명령 구문",
    "оператор", "sats", "语句",
)  # fmt: skip
#: "execute NAME: ...", of the extended protocol.
_EXECUTE = (
    "execute", "Ausführen", "ejecutar", "exécute", "esecuzione di", "実行", "გაშვება", "쿼리실행", "выполнение", "kör",
    "виконувати", "执行(?!时间)",
)  # fmt: skip
#: "execute fetch from NAME/PORTAL: ...": more rows of what was executed before.
_FETCH = (
    "execute fetch from", "Ausführen Fetch von", "ejecutar fetch desde", "exécute fetch à partir de",
    "esecuzione di fetch da", "取り出し実行", "자료뽑기", "выборка из", "kör hämtning från", "виконати витягнення з",
    "执行FETCH操作",
)  # fmt: skip
_DURATION = (
    "duration", "Dauer", "duración", "durée", "durata", "期間", "ხანგრძლივობა", "실행시간", "수행시간",
    "продолжительность", "varaktighet", "тривалість", "执行时间",
)  # fmt: skip
_LEVELS = (
    "DEBUG", "LOG", "INFO", "NOTICE", "WARNING", "ERROR", "FATAL", "PANIC", "LOGG", "FEHLER", "ERREUR", "ERRORE", "FEL",
    "日志", "错误", "로그", "오류", "СООБЩЕНИЕ", "ОШИБКА", "ЗАПИСУВАННЯ", "ПОМИЛКА", "ჟურნალი", "შეცდომა",
)  # fmt: skip

_TIME = rf"(?:(?:{'|'.join(_DURATION)})\s?:?\s*(?P<ms>[\d.,]+)\s*\S{{1,6}}?[,\s]\s*)?"
MESSAGE = re.compile(
    rf"^{_TIME}(?:(?P<fetch>{'|'.join(_FETCH)})|(?:{'|'.join(_STATEMENT)})\s?:\s|(?:{'|'.join(_EXECUTE)})\s?[^:]*:\s)"
    r"(?P<text>.*)$",
    re.DOTALL,
)
#: Of auto_explain: the query, and the plan behind it.
PLAN = re.compile(rf"^{_TIME}plan:\s*Query Text: (?P<text>.*?)(?=\n[^\n]*\(cost=|\n\s*$|$)", re.DOTALL)
#: Of a line on stderr, behind log_line_prefix: a level, or what belongs to the entry before (DETAIL, STATEMENT).
LEVEL = re.compile(rf"(?P<level>{'|'.join(_LEVELS)}|[^\W\d_]{{3,20}}):  (?P<message>.*)$", re.DOTALL)
IS_ENTRY = frozenset(_LEVELS)
