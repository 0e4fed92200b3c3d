import { mostOfJob } from '../../kernel/jobs.js';

/** Fewer items that arrive together get a job each, so that the board shows them one by one. */
const fewestOfJob = 4;

/** Adds the jobs of items. Each resolves when the queue has taken the job, or does not take it in time. */
interface JobAdder<Item> {
  addOne(item: Item): Promise<unknown>;
  /** Adds one job for at most `mostOfJob` items. */
  addMany(items: readonly Item[]): Promise<unknown>;
}

/**
 * Makes jobs for items that have just become due. An item that arrives alone gets a job at once; items that arrive
 * while the queue takes a job share the next one, because a job costs more than most of the work that it starts.
 */
export class Arrivals<Item> {
  private readonly waiting: Item[] = [];
  private isAdding = false;

  constructor(private readonly adder: JobAdder<Item>) {}

  add(item: Item): void {
    this.waiting.push(item);
    if (!this.isAdding) void this.addWaiting();
  }

  private async addWaiting(): Promise<void> {
    this.isAdding = true;
    while (this.waiting.length > 0) {
      const items = this.waiting.splice(0, mostOfJob);
      if (items.length < fewestOfJob) await Promise.all(items.map((item) => this.adder.addOne(item)));
      else await this.adder.addMany(items);
    }
    this.isAdding = false;
  }
}
