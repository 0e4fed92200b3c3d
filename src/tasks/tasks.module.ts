import { Module } from '@nestjs/common';

/** Room 7: the life cycle of tasks. Its doors are not built yet and answer 404. */
@Module({})
export class TasksModule {}
