import { Injectable } from '@nestjs/common';
import type { RialtoError } from '../../kernel/errors.js';
import { systemClock } from '../../kernel/clock.js';
import type { Act, ActEnd, VerbLedger } from '../../kernel/verb-bus.js';
import { RowWriter, writeRowsIn, type RowChange } from '../database/row-writer.js';
import type { Tx } from '../database/tx.js';
import { Metrics } from '../telemetry/metrics.js';

/** Computes the rows that one module stores about an act. A recorder only returns rows; it has no side effects. */
export interface ActRecorder {
  /** Reads what the rows need. Returns undefined when nothing has to be read. */
  prepare?(act: Act, isDenied: boolean): Promise<void> | undefined;
  begin?(act: Act): RowChange[];
  end?(act: Act, end: ActEnd): RowChange[];
}

/**
 * Writes the rows of all recorders for one act as one change, so an act is audited, counted and charged together or
 * not at all.
 */
@Injectable()
export class Ledger implements VerbLedger {
  private readonly recorders: ActRecorder[] = [];

  constructor(
    private readonly writer: RowWriter,
    private readonly metrics: Metrics,
  ) {}

  add(recorder: ActRecorder): void {
    this.recorders.push(recorder);
  }

  prepare(act: Act, isDenied: boolean): Promise<void> | undefined {
    const waits = this.recorders.flatMap((recorder) => recorder.prepare?.(act, isDenied) ?? []);
    return waits.length === 0 ? undefined : Promise.all(waits).then(() => undefined);
  }

  begin(act: Act): Promise<void> {
    return this.writer.write(this.recorders.flatMap((recorder) => recorder.begin?.(act) ?? []));
  }

  async end(act: Act, end: ActEnd): Promise<void> {
    await this.writer.write(this.rowsOfEnd(act, end));
    this.countAct(act, end);
  }

  /** Records the success of an act inside the transaction of its work: both are committed or neither is. */
  async completeIn(tx: Tx, act: Act): Promise<void> {
    const { rows, done } = this.completion(act);
    await writeRowsIn(tx, rows);
    act.recorded = true;
    tx.afterCommit(done);
  }

  /**
   * Returns the success of an act as rows that its work commits together with its own rows. The caller calls `done`
   * after that commit. If it does not, the bus records the act as usual.
   */
  completion(act: Act): { rows: RowChange[]; done: () => void } {
    const end: ActEnd = { outcome: 'completed', durationMs: Math.max(0.001, systemClock.now() - act.startedAt) };
    const done = (): void => {
      act.recorded = true;
      this.countAct(act, end);
    };
    return { rows: this.rowsOfEnd(act, end), done };
  }

  private rowsOfEnd(act: Act, end: ActEnd): RowChange[] {
    return this.recorders.flatMap((recorder) => recorder.end?.(act, end) ?? []);
  }

  private countAct(act: Act, { outcome, durationMs }: ActEnd & { error?: RialtoError }): void {
    this.metrics.acts.inc({ action: act.action, outcome });
    this.metrics.actSeconds.observe({ action: act.action }, durationMs / 1_000);
  }
}
