-- The bytes of images and files, kept once by their SHA-256 in hexadecimal digits.
CREATE TABLE content (
    key INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    data BLOB NOT NULL
) STRICT;
-- Which runs refer to them.
CREATE TABLE run_content (
    run INTEGER NOT NULL,
    content INTEGER NOT NULL,
    PRIMARY KEY (run, content)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_content_content ON run_content (content);
-- The images and files of a result, once the event of its completion was compacted.
ALTER TABLE ticket ADD COLUMN parts TEXT;
