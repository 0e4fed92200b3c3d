import type { RialtoError } from '../../kernel/errors.js';
import { systemClock } from '../../kernel/clock.js';
import type { Act, ActEnd, VerbLedger } from '../../kernel/verb-bus.js';
import { writeRowsIn, type RowChange, type RowWriter } from '../database/row-writer.js';
import type { Tx } from '../database/tx.js';
import type { Metrics } from '../telemetry/metrics.js';

/** What a room remembers of an act. Pure: rows out, nothing done. */
export interface ActRecorder {
  begin?(act: Act): RowChange[];
  end?(act: Act, end: ActEnd): RowChange[];
}

/** Writes what all rooms remember of one act as one change, so an act is audited, counted and charged together or not at all. */
export class Ledger implements VerbLedger {
  private readonly recorders: ActRecorder[] = [];

  constructor(
    private readonly writer: RowWriter,
    private readonly metrics: Metrics,
  ) {}

  add(recorder: ActRecorder): void {
    this.recorders.push(recorder);
  }

  begin(act: Act): Promise<void> {
    return this.writer.write(this.recorders.flatMap((recorder) => recorder.begin?.(act) ?? []));
  }

  async end(act: Act, end: ActEnd): Promise<void> {
    await this.writer.write(this.rowsOfEnd(act, end));
    this.count(act, end);
  }

  /** Records the success of an act inside the transaction of its own work: both are committed or neither. */
  async completeIn(tx: Tx, act: Act): Promise<void> {
    const { rows, done } = this.completion(act);
    await writeRowsIn(tx, rows);
    act.recorded = true;
    tx.afterCommit(done);
  }

  /**
   * The success of an act as rows that its work commits itself, together with what it did. `done` is called after that
   * commit; an act whose work does not call it is recorded by the bus as usual.
   */
  completion(act: Act): { rows: RowChange[]; done: () => void } {
    const end: ActEnd = { outcome: 'completed', durationMs: Math.max(0.001, systemClock.now() - act.startedAt) };
    const done = (): void => {
      act.recorded = true;
      this.count(act, end);
    };
    return { rows: this.rowsOfEnd(act, end), done };
  }

  private rowsOfEnd(act: Act, end: ActEnd): RowChange[] {
    return this.recorders.flatMap((recorder) => recorder.end?.(act, end) ?? []);
  }

  private count(act: Act, { outcome, durationMs }: ActEnd & { error?: RialtoError }): void {
    this.metrics.acts.inc({ action: act.action, outcome });
    this.metrics.actSeconds.observe({ action: act.action }, durationMs / 1_000);
  }
}
