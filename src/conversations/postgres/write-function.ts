/**
 * The function that applies a batch of writes in one statement, and so in one transaction, one round trip and one
 * wait for the disk; a client that hangs holds no lock. Its steps are rows (see `write-steps.ts`); every write ends
 * with the step `end` and yields one row.
 *
 * What a write checks must not change until it commits, so the keys of all entries and counts that a batch touches
 * are locked first, in the order of their numbers, which rules out most deadlocks. Each statement of a volatile
 * function sees what was committed before it (READ COMMITTED), so the checks see the writes that the locks waited for.
 *
 * @param schema quoted
 */
export function writeFunction(schema: string): string {
  return `
CREATE OR REPLACE FUNCTION ${schema}.write_batch(
  locks bigint[], is_alone boolean, kinds text[], names text[], keys text[], contents text[],
  amounts double precision[], originals text[]
) RETURNS TABLE (outcome integer, scores double precision[])
LANGUAGE plpgsql VOLATILE
SET search_path = ${schema}, pg_temp
SET enable_seqscan = off
AS $function$
#variable_conflict use_column
DECLARE
  step record;
  lock_number bigint;
  now_ms bigint;
  -- Of the current write.
  is_skipped boolean := false;
  result integer := -1;
  total double precision := 0;
  found_scores double precision[] := '{}';
  one_score bigint;
BEGIN
  IF is_alone THEN
    PERFORM pg_advisory_xact_lock(locks[1]);
  ELSE
    PERFORM pg_advisory_xact_lock_shared(locks[1]);
    FOREACH lock_number IN ARRAY locks[2:] LOOP
      PERFORM pg_advisory_xact_lock(lock_number);
    END LOOP;
  END IF;
  -- What is acknowledged is on disk, whatever is set for the role or the database.
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  now_ms := floor(extract(epoch FROM clock_timestamp()) * 1000);
  FOR step IN
    SELECT * FROM unnest(kinds, names, keys, contents, amounts, originals)
      AS steps (kind, name, key, content, amount, original)
  LOOP
    CONTINUE WHEN is_skipped AND step.kind <> 'end';
    CASE step.kind
    WHEN 'end' THEN
      outcome := result;
      scores := found_scores;
      RETURN NEXT;
      is_skipped := false;
      result := -1;
      total := 0;
      found_scores := '{}';
    WHEN 'set' THEN
      INSERT INTO entries (space, key, value, expires, original)
        VALUES (step.name, step.key, step.content, now_ms + step.amount::bigint, step.original)
        ON CONFLICT (space, key) DO UPDATE SET value = excluded.value, expires = excluded.expires;
    WHEN 'delete' THEN
      DELETE FROM entries WHERE space = step.name AND key = step.key;
    WHEN 'keep' THEN
      UPDATE entries SET expires = now_ms + step.amount::bigint
        WHERE space = step.name AND key = step.key AND (expires IS NULL OR expires > now_ms);
    WHEN 'absent', 'present' THEN
      IF (step.kind = 'absent') = EXISTS (
        SELECT FROM entries
          WHERE space = step.name AND key = step.key AND (expires IS NULL OR expires > now_ms)
      ) THEN
        result := step.amount;
        is_skipped := true;
      END IF;
    WHEN 'same' THEN
      IF NOT EXISTS (
        SELECT FROM entries
          WHERE space = step.name AND key = step.key AND value = step.content
            AND (expires IS NULL OR expires > now_ms)
      ) THEN
        result := step.amount;
        is_skipped := true;
      END IF;
    WHEN 'replace' THEN
      UPDATE entries SET value = step.content
        WHERE space = step.name AND key = step.key AND value = step.original
          AND (expires IS NULL OR expires > now_ms);
      result := CASE WHEN FOUND THEN 1 ELSE 0 END;
    WHEN 'limit' THEN
      IF total > step.amount THEN
        result := step.key::integer;
        is_skipped := true;
      ELSE
        total := 0;
        found_scores := '{}';
      END IF;
${indexSteps("rankings")}
${indexSteps("counts")}
    END CASE;
  END LOOP;
END
$function$;`;
}

function indexSteps(table: "rankings" | "counts"): string {
  return `
    WHEN '${table}.term' THEN
      SELECT score INTO one_score FROM ${table} WHERE ranking = step.name AND member = step.key;
      one_score := coalesce(one_score, 0);
      total := total + one_score * step.amount;
      found_scores := found_scores || one_score::double precision;
    WHEN '${table}.add-member' THEN
      -- Looked up first: ON CONFLICT locks the row, and writes, even where nothing changes.
      IF NOT EXISTS (
        SELECT FROM ${table}
          WHERE ranking = step.name AND member = step.key AND score >= step.amount::bigint
      ) THEN
        INSERT INTO ${table} AS old (ranking, member, score, original)
          VALUES (step.name, step.key, step.amount::bigint, step.original)
          ON CONFLICT (ranking, member) DO UPDATE SET score = excluded.score WHERE excluded.score > old.score;
      END IF;
    WHEN '${table}.append-member' THEN
      INSERT INTO ${table} (ranking, member, score, original)
        VALUES (step.name, step.key, greatest(step.amount::bigint, (
          SELECT score + 1 FROM ${table} WHERE ranking = step.name ORDER BY score DESC LIMIT 1
        )), step.original)
        ON CONFLICT (ranking, member) DO UPDATE SET score = excluded.score;
    WHEN '${table}.add-score' THEN
      INSERT INTO ${table} AS old (ranking, member, score, original)
        VALUES (step.name, step.key, step.amount::bigint, step.original)
        ON CONFLICT (ranking, member) DO UPDATE SET score = old.score + excluded.score;
    WHEN '${table}.remove-member' THEN
      DELETE FROM ${table} WHERE ranking = step.name AND member = step.key;
    WHEN '${table}.trim-index' THEN
      DELETE FROM ${table} WHERE ranking = step.name AND score <= step.amount::bigint;`;
}
