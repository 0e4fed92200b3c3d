import { Module } from '@nestjs/common';

/** Room 10: remote work that outlives one call. Its doors are not built yet and answer 404. */
@Module({})
export class ContinuationsModule {}
